package opdef

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/weft-ml/weft/tensor"
)

// TestParseForms parses every form of the language of definitions.
func TestParseForms(t *testing.T) {
	d := Def{
		Name: "All",
		In:   []string{"a: T", "b: N * T", "c: L", "d: Ref(T)", "e: int32", "f: N * string", "g: Ref(float)", "h: Ref(N * T)"},
		Out:  []string{"x: bool", "y: L"},
		Attrs: []string{
			"T: type", "N: int >= 1", "L: list(type) >= 0 = []", "real: realnumbertype = double", "set: {half, int4} = half",
			"wide: {bool, numbertype} = bool", "i: int = -3", "f: float = 1e-4", "inf: float = inf", "b: bool = true",
			"s: string = ''", "nl: string = '\\n'", "mode: {'A', 'B,C'} = 'B,C'", `dq: string = "it's"`, "t: type = int64",
			"shape: shape = [2,-1]", "unknown: shape = <unknown>", "scalar: shape = []", "fn: func = f", "fq: func = ''",
			"ts: tensor = uint8[4]{255, 0, 0, 255}", "tf: tensor = float32[]{0.5}", "li: list(int) >= 4 = [1, 2, 3, 4]", "lf: list(float) = [0.5, 1]",
			"lb: list(bool) = [true, false]", "ls: list(string) = ['a,b', '']", "lt: list({int32, int64}) >= 1 = [int32]",
			"lm: list({'A', 'B'}) = []", "lh: list(shape) = [[], [1], <unknown>]", "lfn: list(func) = []", "lts: list(tensor) = []",
			"req: tensor",
		},
		Stateful: true, Commutative: true, Aggregate: true, AllowsUninitialized: true, Distributed: true,
	}
	op, err := d.Parse()
	if err != nil {
		t.Fatal(err)
	}
	const want = "Op<name=All; signature=a:T, b:N*T, c:L, d:Ref(T), e:int32, f:N*string, g:Ref(float), h:Ref(N*T) -> x:bool, y:L; " +
		"attr=T:type; attr=N:int,min=1; attr=L:list(type),default=[],min=0; " +
		"attr=real:type,default=DT_DOUBLE,allowed=[DT_FLOAT, DT_DOUBLE, DT_INT32, DT_UINT8, DT_INT16, DT_INT8, DT_INT64, " +
		"DT_BFLOAT16, DT_UINT16, DT_HALF, DT_UINT32, DT_UINT64]; " +
		"attr=set:type,default=DT_HALF,allowed=[DT_HALF, DT_INT4]; " +
		"attr=wide:type,default=DT_BOOL,allowed=[DT_BOOL, DT_FLOAT, DT_DOUBLE, DT_INT32, DT_UINT8, DT_INT16, DT_INT8, DT_COMPLEX64, " +
		"DT_INT64, DT_QINT8, DT_QUINT8, DT_QINT32, DT_BFLOAT16, DT_QINT16, DT_QUINT16, DT_UINT16, DT_COMPLEX128, DT_HALF, DT_UINT32, DT_UINT64]; " +
		"attr=i:int,default=-3; attr=f:float,default=0.0001; attr=inf:float,default=inf; attr=b:bool,default=true; " +
		`attr=s:string,default=""; attr=nl:string,default="\n"; attr=mode:string,default="B,C",allowed=["A", "B,C"]; ` +
		`attr=dq:string,default="it\'s"; attr=t:type,default=DT_INT64; attr=shape:shape,default=[2,?]; ` +
		"attr=unknown:shape,default=<unknown>; attr=scalar:shape,default=[]; attr=fn:func,default=f[]; attr=fq:func,default=[]; " +
		"attr=ts:tensor,default=Tensor<type: uint8 shape: [4] values: 255 0 0...>; " +
		"attr=tf:tensor,default=Tensor<type: float shape: [] values: 0.5>; attr=li:list(int),default=[1, 2, 3, 4],min=4; " +
		"attr=lf:list(float),default=[0.5, 1]; attr=lb:list(bool),default=[true, false]; " +
		`attr=ls:list(string),default=["a,b", ""]; attr=lt:list(type),default=[DT_INT32],min=1,allowed=[DT_INT32, DT_INT64]; ` +
		`attr=lm:list(string),default=[],allowed=["A", "B"]; attr=lh:list(shape),default=[[], [1], <unknown>]; ` +
		"attr=lfn:list(func),default=[]; attr=lts:list(tensor),default=[]; attr=req:tensor; " +
		"is_commutative=true; is_aggregate=true; is_stateful=true; allows_uninitialized_input=true; is_distributed_communication=true>"
	if got := op.String(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for i := range op.Attrs {
		if a := &op.Attrs[i]; a.Default != nil && KindOf(a.Default) != a.Kind {
			t.Errorf("default of %s is a %s, not a %s", a.Name, KindOf(a.Default), a.Kind)
		}
	}
	if v, _ := op.Attr("inf").Default.(float32); !math.IsInf(float64(v), 1) {
		t.Errorf("inf is %v", v)
	}
}

func TestParseErrors(t *testing.T) {
	for _, test := range []struct {
		def  Def
		want string
	}{
		{Def{Attrs: []string{"T"}}, "not of the form"},
		{Def{Attrs: []string{"T: kind"}}, "unknown kind kind"},
		{Def{Attrs: []string{"T: {float, foo}"}}, "unknown type foo"},
		{Def{Attrs: []string{"T: int = x"}}, "default: strconv.ParseInt"},
		{Def{Attrs: []string{"T: int = 3 4"}}, `default: unexpected "4"`},
		{Def{Attrs: []string{"T: string = x"}}, "not in quotes"},
		{Def{Attrs: []string{"T: string = 'x"}}, "no closing quote"},
		{Def{Attrs: []string{`T: string = '\xg0'`}}, `\xg0 is not a hexadecimal escape`},
		{Def{Attrs: []string{"T: type = foo"}}, "unknown type foo"},
		{Def{Attrs: []string{"T: {float} = int32"}}, "not in the list of allowed values"},
		{Def{Attrs: []string{"T: {'a'} = 'b'"}}, "not in the list of allowed values"},
		{Def{Attrs: []string{"T: int >= +3"}}, "invalid syntax"},
		{Def{Attrs: []string{"T: int >= 3 "}}, "not of the form"},
		{Def{Attrs: []string{"T: int >= 3 = 2"}}, "must be at least minimum 3"},
		{Def{Attrs: []string{"T: list(int) >= 2 = [1]"}}, "Length for attr 'T' of 1 must be at least minimum 2"},
		{Def{Attrs: []string{"T: list(int) = [1 2]"}}, "not separated by a comma"},
		{Def{Attrs: []string{"T: list(int) = 1"}}, "is not a list in []"},
		{Def{Attrs: []string{"T: shape = 3"}}, "is not a list in []"},
		{Def{Attrs: []string{"T: tensor = string[]{'a'}"}}, "tensors of type string are not supported"},
		{Def{Attrs: []string{"T: tensor = int32[2]{1}"}}, "needs 2 values, got 1"},
		{Def{Attrs: []string{"T: tensor = int32[?]{1}"}}, "default"},
		{Def{Attrs: []string{"T: type", "T: int"}}, "duplicate name"},
		{Def{In: []string{"a: T"}}, "unknown type T"},
		{Def{In: []string{"a: Ref(float"}}, "not of the form"},
		{Def{In: []string{"a: N * float"}}, "no int attr N"},
		{Def{In: []string{"a: s"}, Attrs: []string{"s: string"}}, "attr s is not of kind type"},
		{Def{In: []string{"a: float"}, Out: []string{"a: float"}}, "duplicate name"},
	} {
		if _, err := test.def.Parse(); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: got %v, want %q", test.def, err, test.want)
		}
	}
}

func parsed(t *testing.T, d Def) *Op {
	t.Helper()
	op, err := d.Parse()
	if err != nil {
		t.Fatal(err)
	}
	return op
}

func TestArgTypes(t *testing.T) {
	op := parsed(t, Def{
		Name: "Op", In: []string{"a: T", "b: Ref(N * T)", "c: L", "d: int64"}, Attrs: []string{"T: type", "N: int", "L: list(type)"},
	})
	attrs := Attrs{"T": tensor.Float32, "N": int64(2), "L": []tensor.DType{tensor.Bool, tensor.String}}
	types, err := op.InputTypes(attrs)
	if err != nil {
		t.Fatal(err)
	}
	want := []tensor.DType{tensor.Float32, tensor.Float32.Ref(), tensor.Float32.Ref(), tensor.Bool, tensor.String, tensor.Int64}
	if !slices.Equal(types, want) {
		t.Errorf("got %v", types)
	}
	if lo, hi, err := ArgRange(op.Inputs, attrs, "c"); lo != 3 || hi != 5 || err != nil {
		t.Errorf("c is at %d to %d, %v", lo, hi, err)
	}
	if _, _, err := ArgRange(op.Inputs, attrs, "z"); err == nil {
		t.Error("an argument that does not exist was found")
	}
	for _, bad := range []Attrs{
		{"N": int64(2), "L": []tensor.DType{}}, {"T": tensor.Float32, "L": []tensor.DType{}}, {"T": tensor.Float32, "N": int64(2)},
		{"T": tensor.Float32, "N": int64(-1), "L": []tensor.DType{}}, {"T": tensor.Float32, "N": int64(1 << 40), "L": []tensor.DType{}},
	} {
		if _, err := op.InputTypes(bad); err == nil {
			t.Errorf("%v: no error", bad)
		}
	}
}

func TestCheckAttrs(t *testing.T) {
	op := parsed(t, Def{Name: "Op", Attrs: []string{"T: {float, int32}", "l: list(int) = [1]", "n: int = 3"}})
	complete := Attrs{"T": tensor.Float32, "l": []int64{2}, "n": int64(4), "_x": true, "new": "y"}
	got, err := op.CheckAttrs("n", complete)
	if err != nil || reflect.ValueOf(got).Pointer() != reflect.ValueOf(complete).Pointer() {
		t.Errorf("complete attributes: got %v, %v", got, err)
	}
	for _, empty := range []any{AnyList{}, []string{}, []int64{}} {
		given := Attrs{"T": tensor.Float32, "l": empty}
		got, err := op.CheckAttrs("n", given)
		if err != nil {
			t.Fatal(err)
		}
		if l, ok := got["l"].([]int64); !ok || len(l) != 0 || got.Int("n") != 3 {
			t.Errorf("%T: got %v", empty, got)
		}
		if len(given) != 2 {
			t.Error("the attributes that were given have changed")
		}
	}
	if _, err := op.CheckAttrs("n", Attrs{"T": Placeholder("U")}); err != nil {
		t.Errorf("a placeholder: %v", err)
	}
}

// TestAccessors checks that typed accessors return the attribute, and the zero value if it is
// absent.
func TestAccessors(t *testing.T) {
	f := Func{Name: "f"}
	a := Attrs{
		"s": "x", "i": int64(1), "f": float32(2), "b": true, "t": tensor.Int8, "h": tensor.MakePartial(1), "v": tensor.Scalar(int32(7)),
		"fn": f, "ls": []string{"x"}, "li": []int64{1}, "lf": []float32{2}, "lb": []bool{true}, "lt": []tensor.DType{tensor.Int8},
		"lh": []tensor.PartialShape{tensor.MakePartial(1)}, "lfn": []Func{f},
	}
	for _, test := range []struct{ got, want any }{
		{a.String("s"), "x"}, {a.Int("i"), 1}, {a.Float("f"), float32(2)}, {a.Bool("b"), true}, {a.Type("t"), tensor.Int8},
		{a.Shape("h"), tensor.MakePartial(1)}, {a.Tensor("v").String(), "Tensor<type: int32 shape: [] values: 7>"}, {a.Func("fn"), f},
		{a.Strings("ls"), a["ls"]}, {a.Ints("li"), a["li"]}, {a.Floats("lf"), a["lf"]}, {a.Bools("lb"), a["lb"]},
		{a.Types("lt"), a["lt"]}, {a.Shapes("lh"), a["lh"]}, {a.Funcs("lfn"), a["lfn"]},
		{a.String("-"), ""}, {a.Int("-"), 0}, {a.Tensor("-"), (*tensor.Tensor)(nil)}, {a.Shape("-"), tensor.PartialShape{}},
		{a.Strings("-"), []string(nil)},
	} {
		if !reflect.DeepEqual(test.got, test.want) {
			t.Errorf("got %#v, want %#v", test.got, test.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("a: Ref(N * T)", "T: {float, int32} = float")
	f.Add("a: float", "s: list({'a', 'b'}) >= 1 = ['a']")
	f.Add("a: float", "v: tensor = uint8[2]{1, 2}")
	f.Fuzz(func(t *testing.T, arg, attr string) {
		d := Def{Name: "F", In: []string{arg}, Attrs: []string{attr, "N: int", "T: type"}}
		if op, err := d.Parse(); err == nil && op.String() == "" {
			t.Error("an operation that does not print")
		}
	})
}

func TestParseBytes(t *testing.T) {
	got, err := ParseValue("string", `'a\x00\xff\'\n'`)
	if err != nil || got != "a\x00\xff'\n" {
		t.Errorf("got %q, %v", got, err)
	}
}
