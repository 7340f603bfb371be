package lower_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/pass/loopframe"
	"github.com/weft-ml/weft/internal/pass/lower"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/internal/test/graphtext"
	"github.com/weft-ml/weft/status"
)

func testOps(t testing.TB) graphtext.Ops {
	t.Helper()
	ops, err := graphtext.ParseOps(`
		Const() -> (output: dtype) [value: tensor; dtype: type]
		Placeholder() -> (output: dtype) [dtype: type; shape: shape = <unknown>]
		NoOp()
		Identity(input: T) -> (output: T) [T: type]
		IdentityN(input: T) -> (output: T) [T: list(type) >= 1]
		ToBool(input: T) -> (output: bool) [T: type]
		Add(x: T, y: T) -> (z: T) [T: type]
		Less(x: T, y: T) -> (z: bool) [T: type]
		VarHandleOp() -> (resource: resource) [shared_name: string = ""] stateful
		ReadVariableOp(resource: resource) -> (value: dtype) [dtype: type] stateful
		AssignAddVariableOp(resource: resource, value: dtype) [dtype: type] stateful
		Switch(data: T, pred: bool) -> (output_false: T, output_true: T) [T: type]
		_SwitchN(data: T, output_index: int32) -> (outputs: num_outs * T) [num_outs: int >= 1; T: type]
		Merge(inputs: N * T) -> (output: T, value_index: int32) [T: type; N: int >= 1]
		Enter(data: T) -> (output: T) [T: type; frame_name: string; is_constant: bool = false; parallel_iterations: int = 10]
		Exit(data: T) -> (output: T) [T: type]
		NextIteration(data: T) -> (output: T) [T: type]
		LoopCond(input: bool) -> (output: bool)
		If(cond: Tcond, input: Tin) -> (output: Tout) [Tcond: type; Tin: list(type) >= 0; Tout: list(type) >= 0; then_branch: func; else_branch: func] stateful
		StatelessIf(cond: Tcond, input: Tin) -> (output: Tout) [Tcond: type; Tin: list(type) >= 0; Tout: list(type) >= 0; then_branch: func; else_branch: func]
		Case(branch_index: int32, input: Tin) -> (output: Tout) [Tin: list(type) >= 0; Tout: list(type) >= 0; branches: list(func) >= 1] stateful
		StatelessWhile(input: T) -> (output: T) [T: list(type) >= 0; cond: func; body: func; parallel_iterations: int = 10]
		While(input: T) -> (output: T) [T: list(type) >= 0; cond: func; body: func; parallel_iterations: int = 10] stateful
		PartitionedCall(args: Tin) -> (output: Tout) [Tin: list(type) >= 0; Tout: list(type) >= 0; f: func; executor_type: string = ""]
		StatefulPartitionedCall(args: Tin) -> (output: Tout) [Tin: list(type) >= 0; Tout: list(type) >= 0; f: func] stateful
		_Arg() -> (output: T) [T: type; index: int >= 0] stateful
		_Retval(input: T) [T: type; index: int >= 0] stateful
	`)
	if err != nil {
		t.Fatal(err)
	}
	return ops
}

func TestScripts(t *testing.T) {
	ops := testOps(t)
	graphtext.RunScripts(t, "testdata/*.txt", func(t *testing.T, c *graphtext.Case) string {
		g, err := graphtext.Parse(ops, c.Input)
		if err != nil {
			t.Fatal(err)
		}
		o := lower.Options{Fetchable: c.Has("fetchable"), Direct: c.Has("direct"), CallsOnly: c.Has("calls")}
		wanted := lower.Needed(g, o)
		before := graphtext.Print(g)
		if err := lower.Lower(g, o); err != nil {
			return "error: " + err.Error()
		}
		after := graphtext.Print(g)
		if !wanted && after != before {
			t.Errorf("the graph was not wanted, but changed")
		}
		if _, err := loopframe.Find(g); err != nil {
			t.Errorf("frames: %v", err)
		}
		g.Library = graph.New(ops).Library // its functions are in the input
		return graphtext.Print(g)
	})
}

// twice returns a graph with a call of the last of n functions, which call the previous one twice
// each.
func twice(t *testing.T, n int) *graph.Graph {
	t.Helper()
	var text strings.Builder
	text.WriteString("func f0(x: float) -> (y: float) {\n  return y=x\n}\n")
	for i := range n - 1 {
		fmt.Fprintf(&text, "func f%d(x: float) -> (y: float) {\n", i+1)
		fmt.Fprintf(&text, "  a = PartitionedCall(x) Tin=[float] Tout=[float] f=@f%d\n", i)
		fmt.Fprintf(&text, "  b = PartitionedCall(a:output:0) Tin=[float] Tout=[float] f=@f%d\n", i)
		text.WriteString("  return y=b:output:0\n}\n")
	}
	fmt.Fprintf(&text, "x = Placeholder() dtype=float\ny = PartitionedCall(x) Tout=[float] f=@f%d\n", n-1)
	g, err := graphtext.Parse(testOps(t), text.String())
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestGrowthIsBounded(t *testing.T) {
	g := twice(t, 40)
	if err := lower.Lower(g, lower.Options{Limit: 1000}); err != nil {
		t.Fatal(err)
	}
	if n := g.NumNodes(); n < 500 || n > 1100 {
		t.Errorf("the graph has %d nodes", n)
	}
}

// chain returns a graph with a call of the first of n functions. Each calls the next one by a node
// of the given name.
func chain(t *testing.T, n int, node string) *graph.Graph {
	t.Helper()
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, "func f%d(x: float) -> (y: float) {\n", i)
		fmt.Fprintf(&text, "  %s = PartitionedCall(x) Tin=[float] Tout=[float] f=@f%d\n", node, i+1)
		fmt.Fprintf(&text, "  return y=%s:output:0\n}\n", node)
	}
	fmt.Fprintf(&text, "func f%d(x: float) -> (y: float) {\n  return y=x\n}\n", n)
	text.WriteString("x = Placeholder() dtype=float\ny = PartitionedCall(x) Tout=[float] f=@f0\n")
	g, err := graphtext.Parse(testOps(t), text.String())
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// calls returns how many calls a graph has, and the bytes of the names of all nodes.
func calls(g *graph.Graph) (n, names int) {
	for node := range g.Nodes() {
		if node.Op.Name == "PartitionedCall" {
			n++
		}
		names += len(node.Name)
	}
	return n, names
}

// TestDepthIsBounded inlines chains of functions. Names have the names of all calls around a node,
// so their length would grow with the square of the length of the chain.
func TestDepthIsBounded(t *testing.T) {
	for _, c := range []struct{ functions, calls int }{{200, 0}, {5000, 1}} {
		g := chain(t, c.functions, "c")
		if err := lower.Lower(g, lower.Options{}); err != nil {
			t.Fatal(err)
		}
		if n, names := calls(g); n != c.calls || names > 500_000 {
			t.Errorf("%d functions: %d calls remain, want %d; the names have %d bytes", c.functions, n, c.calls, names)
		}
	}
}

// TestNamesAreBounded inlines functions whose nodes have long names.
func TestNamesAreBounded(t *testing.T) {
	g := chain(t, 100, strings.Repeat("c", 10_000))
	if err := lower.Lower(g, lower.Options{Limit: 1000}); err != nil {
		t.Fatal(err)
	}
	if n, names := calls(g); n != 1 || names > 2_000_000 {
		t.Errorf("%d calls remain, want 1; the names have %d bytes", n, names)
	}
}

func TestMemoryIsAskedFor(t *testing.T) {
	g := twice(t, 20)
	membudget.SetLimit(1 << 20)
	defer membudget.SetLimit(0)
	if err := lower.Lower(g, lower.Options{}); status.CodeOf(err) != status.ResourceExhausted {
		t.Errorf("inlining without memory: %v", err)
	}
}

// TestMismatchedBodies calls a large function many times with the wrong number of arguments. This
// takes no longer than inlining a function that fits.
func TestMismatchedBodies(t *testing.T) {
	var text strings.Builder
	text.WriteString("func F(x: float) -> (y: float) {\n")
	for i := range 1000 {
		fmt.Fprintf(&text, "  n%d = Identity(x) T=float\n", i)
	}
	text.WriteString("  return y=x\n}\n")
	for i := range 20000 {
		fmt.Fprintf(&text, "c%d = PartitionedCall() Tout=[float] f=@F\n", i)
	}
	g, err := graphtext.Parse(testOps(t), text.String())
	if err != nil {
		t.Fatal(err)
	}
	if err := lower.Lower(g, lower.Options{Limit: 10000}); err != nil {
		t.Fatal(err)
	}
	if n := g.NumNodes(); n != 20000 {
		t.Errorf("the graph has %d nodes", n)
	}
}
