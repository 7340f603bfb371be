package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/weft-ml/weft/status"
)

// hiddenScalar is text for the float p, which the master does not fold.
const hiddenScalar = "p_c = Const() value=float[]{1}\np = PlaceholderWithDefault(p_c) shape=[]\n"

// differentiated is text for the node y, the gradient of function F.
const differentiated = hiddenScalar + "y = SymbolicGradient(p, p) f=@F Tin=[float, float] Tout=[float]\n"

// recursiveGradient is a probe of the gradient of a function that calls itself by a node c, which
// has the output out. The node may use k, a bool. Text is part of the error.
func recursiveGradient(name, c, out, text string) probe {
	return probe{name: "gradient-" + name, codes: []status.Code{status.InvalidArgument}, text: text, run: func(cl *client) error {
		return cl.timed(5*time.Second, fmt.Sprintf(`
func C(x: float) -> (y: bool) {
  k = Less(x, x) T=float
  return y=k:z:0
}
func F(x: float) -> (y: float) {
  k = Less(x, x) T=float
  c = %s
  return y=c:%s:0
}
`, c, out)+differentiated)
	}}
}

// callsTwice is text for functions F and F1 to Fn that each call the next one twice.
func callsTwice(n int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "func F%d(x: float) -> (y: float) {\n  z = Square(x) T=float\n  return y=z:y:0\n}\n", n)
	for i := n - 1; i >= 0; i-- {
		name := fmt.Sprint("F", i)
		if i == 0 {
			name = "F"
		}
		fmt.Fprintf(&b, `func %s(x: float) -> (y: float) {
  v = PartitionedCall(x) f=@F%[2]d Tin=[float] Tout=[float]
  z = PartitionedCall(v:output:0) f=@F%[2]d Tin=[float] Tout=[float]
  return y=z:output:0
}
`, name, i+1)
	}
	return b.String()
}

// tree is text for a function F over four devices that calls itself n times.
func tree(n int) string {
	var b strings.Builder
	b.WriteString("func F(x: float) -> (y: float) {\n")
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("c%d:output:0", i)
		fmt.Fprintf(&b, "  c%d = StatefulPartitionedCall(x) f=@F Tin=[float] Tout=[float] device=/job:ps/task:0/cpu:%d\n", i, i%4)
	}
	fmt.Fprintf(&b, "  z = AddN(%s) N=%d T=float device=/job:ps/task:0/cpu:1\n  return y=z:sum:0\n}\n", strings.Join(names, ", "), n)
	return b.String()
}

// mutualTree is text for a function F over several devices that calls itself and function H, which
// calls F.
const mutualTree = `
func F(x: float) -> (y: float) {
  a = AddV2(x, x) T=float device=/job:ps/task:0/cpu:1
  b = AddV2(a:z:0, a:z:0) T=float
  c = StatefulPartitionedCall(b:z:0) f=@H Tin=[float] Tout=[float] device=/job:ps/task:0/cpu:2
  d = StatefulPartitionedCall(x) f=@F Tin=[float] Tout=[float]
  e = PartitionedCall(x) f=@Same Tin=[float] Tout=[float] device=/job:ps/task:0/cpu:1
  z = AddV2(d:output:0, e:output:0) T=float device=/job:ps/task:0/cpu:3
  return y=z:z:0
}
func H(x: float) -> (y: float) {
  c = StatefulPartitionedCall(x) f=@F Tin=[float] Tout=[float]
  return y=c:output:0
}
func Same(x: float) -> (y: float) {
  z = Identity(x) T=float
  return y=z:output:0
}
`

// doublingAttributes is text for functions F to Fn that each call the next one with an attribute in
// which theirs is twice.
func doublingAttributes(n int) string {
	var b strings.Builder
	b.WriteString("func G(x: float) -> (y: float) [a: func; b: func] {\n  z = Identity(x) T=float\n  return y=z:output:0\n}\n")
	for i := range n {
		name, next := fmt.Sprint("F", i), fmt.Sprint("F", i+1)
		if i == 0 {
			name = "F"
		}
		fmt.Fprintf(&b, `func %s(x: float) -> (y: float) [g: func] {
  z = StatefulPartitionedCall(x) f=@%s{g=@G{a=$g, b=$g}} Tin=[float] Tout=[float] _noinline=true
  return y=z:output:0
}
`, name, next)
	}
	fmt.Fprintf(&b, "func F%d(x: float) -> (y: float) [g: func] {\n  z = Identity(x) T=float\n  return y=z:output:0\n}\n", n)
	return b.String() + hiddenScalar + "y = StatefulPartitionedCall(p) f=@F{g=@G} Tin=[float] Tout=[float] _noinline=true\n"
}

// treeProbe is a probe of a function F over four devices.
func treeProbe(name, functions string) probe {
	return probe{
		name: name, args: []string{"--cpu-devices=4"}, codes: []status.Code{status.DeadlineExceeded, status.ResourceExhausted},
		run: func(c *client) error {
			begin := time.Now()
			err := c.timed(2*time.Second, functions+hiddenScalar+"q = StatefulPartitionedCall(p) f=@F Tin=[float] Tout=[float]\ny = Neg(q)\n")
			if took := time.Since(begin); took > 10*time.Second {
				return fmt.Errorf("a step with 2 s took %v: %w", took, err)
			}
			return err
		},
	}
}

var callProbes = []probe{
	recursiveGradient("recursion", "PartitionedCall(x) f=@F Tin=[float] Tout=[float]", "output", "calls itself"),
	recursiveGradient("recursion-direct", "F(x)", "y", "No gradient"),
	recursiveGradient("recursion-if", "If(k:z:0, x) Tcond=bool Tin=[float] Tout=[float] then_branch=@F else_branch=@F", "output", "calls itself"),
	recursiveGradient("recursion-while", "While(x) T=[float] body=@F cond=@C", "output", "calls itself"),
	recursiveGradient("recursion-twice", "SymbolicGradient(x, x) Tin=[float, float] Tout=[float] f=@F", "output", "No gradient"),
	{name: "gradient-doubling", codes: []status.Code{status.ResourceExhausted, status.DeadlineExceeded}, run: func(c *client) error {
		return c.timed(5*time.Second, callsTwice(30)+differentiated)
	}},
	{name: "attributes-doubling", text: "values", run: func(c *client) error {
		return c.timed(5*time.Second, doublingAttributes(40))
	}},
	treeProbe("tree-two", tree(2)),
	treeProbe("tree-eight", tree(8)),
	treeProbe("tree-mutual", mutualTree),
}
