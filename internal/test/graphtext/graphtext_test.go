package graphtext

import (
	"strings"
	"testing"
)

const testOps = `
	Const() -> (output: dtype) [value: tensor; dtype: type]
	Placeholder() -> (output: dtype) [dtype: type; shape: shape = <unknown>]
	NoOp()
	Identity(input: T) -> (output: T) [T: type]
	Add(x: T, y: T) -> (z: T) [T: {float, int32}] commutative
	MatMul(a: T, b: T) -> (product: T) [T: type; transpose_a: bool = false; transpose_b: bool = false]
	Concat(dim: int32, values: N * T) -> (output: T) [N: int >= 2; T: type]
	IdentityN(input: T) -> (output: T) [T: list(type) >= 1]
	Merge(inputs: N * T) -> (output: T, value_index: int32) [T: type; N: int >= 1]
	VariableV2() -> (ref: Ref(dtype)) [shape: shape; dtype: type; container: string = ''] stateful
	Assign(ref: Ref(T), value: T) -> (output_ref: Ref(T)) [T: type]
	Call(args: Tin) -> (output: Tout) [Tin: list(type) >= 0; Tout: list(type) >= 0; f: func] stateful
	Split(x: T) -> (y: num * T) [num: int >= 1; T: type]
	Attrs() [i: int = 0; f: float = 0; b: bool = false; s: string = ''; t: type = float; h: shape = []; il: list(int) = []; fl: list(float) = []; sl: list(string) = []; tl: list(type) = []; hl: list(shape) = []; fn: func = @none]
`

func ops(t testing.TB) Ops {
	t.Helper()
	ops, err := ParseOps(testOps)
	if err != nil {
		t.Fatal(err)
	}
	return ops
}

func TestScripts(t *testing.T) {
	ops := ops(t)
	RunScripts(t, "testdata/*.txt", func(t *testing.T, c *Case) string {
		switch c.Command {
		case "print":
			g, err := Parse(ops, c.Input)
			if err != nil {
				return "error: " + err.Error()
			}
			text := Print(g)
			again, err := Parse(ops, text)
			if err != nil {
				t.Fatalf("the printed text cannot be parsed: %v\n%s", err, text)
			}
			if got := Print(again); got != text {
				t.Errorf("printed the second time:\n%s\nthe first time:\n%s", got, text)
			}
			return text
		case "upper":
			return strings.ToUpper(c.Input) + c.Arg("suffix") + strings.Join(c.Args("list"), "+")
		}
		t.Fatalf("unknown command %s", c.Command)
		return ""
	})
}

func TestRewritingKeepsScripts(t *testing.T) {
	const text = "# a comment\n\n# a case\nupper suffix=x flag\nabc\n----\nABC\nx\n\nupper\n\na\n----\n----\n\nA\n----\n----\n\n# the end\n"
	cases, err := splitScript(text)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for i := range cases {
		cases[i].write(&b, cases[i].want)
	}
	if b.String() != text {
		t.Errorf("written back:\n%s", b.String())
	}
	if len(cases) != 3 || cases[0].name != "a case" || cases[0].want != "ABC\nx\n" || !cases[0].Has("flag") || cases[0].Has("a") ||
		cases[1].Input != "\na\n" || cases[1].want != "\nA\n" {
		t.Errorf("read %+v", cases)
	}
}

func TestTruncatedScriptsFail(t *testing.T) {
	for _, text := range []string{"cmd\ninput\n", "cmd\n----\n----\noutput\n"} {
		if _, err := splitScript(text); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("a = Const() value=float[2]{1, 2}\nb = Add(a, a, ^a) device=/job:ps")
	f.Add(`a = Attrs() i=3 f=nan s="x\n" hl=[[2,?], <unknown>] fn=@f{a=1} _x=shape[2] _y=["loc:@a"]`)
	f.Add("e = Identity(?) T=float\nm = Merge(e, m)\nversions producer=3")
	f.Add("func F(x: N * T) -> (y: T) [N: int; T: type = float] {\n  s = Merge(x) l=[] T=$T\n  return y=s:o:0 ^d=s\n}\na = F() N=0")
	ops := ops(f)
	f.Fuzz(func(t *testing.T, text string) {
		g, err := Parse(ops, text)
		if err != nil {
			return
		}
		printed := Print(g)
		again, err := Parse(ops, printed)
		if err != nil {
			t.Fatalf("%v in\n%s", err, printed)
		}
		if got := Print(again); got != printed {
			t.Errorf("printed the second time:\n%s\nthe first time:\n%s", got, printed)
		}
	})
}
