package op_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/weft-ml/weft/graph"
	_ "github.com/weft-ml/weft/kernels"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

func add(s *op.Scope) string { return op.Const(s, int32(1)).Node.Name }

// TestNames checks for the names that TensorFlow's Python API chooses in the same order of calls.
func TestNames(t *testing.T) {
	s := op.NewScope()
	var got []string
	names := func(s *op.Scope, names ...string) {
		for _, n := range names {
			if n != "" {
				s = s.Named(n)
			}
			got = append(got, add(s))
		}
	}
	names(s, "", "", "x", "x", "X", "x_1", "x")
	x := s.SubScope("x")
	names(x, "a")
	names(x.SubScope("b"), "")
	names(x.SubScope("b"), "")
	names(s.SubScope("s"), "x", "x")
	names(s.SubScope("s"), "x")
	names(s, "s", "s_1")
	names(s.InScope("s"), "x")
	names(s, "a/b", "a")
	names(s.SubScope("a"), "b")
	want := "Const Const_1 x x_1 X_2 x_1_1 x_3 x_4/a x_4/b/Const x_4/b_1/Const s/x s/x_1 s_1/x s_2 s_1_1 s/x_2 a/b a a_1/b"
	if have := strings.Join(got, " "); have != want {
		t.Errorf("got  %s\nwant %s", have, want)
	}
}

func TestNamesInAnImportedGraph(t *testing.T) {
	g := graph.New(op.Defs)
	if _, err := g.Add("a/b", "NoOp", nil); err != nil {
		t.Fatal(err)
	}
	s := op.ScopeOf(g)
	if got := add(s.Named("a/b")); got != "a/b_1" {
		t.Errorf("a new node a/b is named %s", got)
	}
	if got := s.SubScope("a").Prefix(); got != "a_1/" {
		t.Errorf("a new scope a has the prefix %s", got)
	}
}

func TestComposite(t *testing.T) {
	s := op.NewScope()
	sum := func(s *op.Scope) string {
		inner, result := s.Composite("sum")
		return op.Neg(result, op.Const(inner, 1.0)).Node.Name
	}
	if a, b, c := sum(s), sum(s), sum(s.Named("y")); a != "sum" || b != "sum_1" || c != "y" {
		t.Errorf("the results are named %s, %s and %s", a, b, c)
	}
	inner, result := s.Composite("outer")
	if a := sum(result); a != "outer" || s.Graph().Node("outer/Const") == nil {
		t.Errorf("the result of a composite within a composite is named %s", a)
	}
	if a := sum(inner); a != "outer/sum" {
		t.Errorf("a composite within a composite is named %s", a)
	}
}

func TestDevices(t *testing.T) {
	root := op.NewScope()
	ps := root.WithDevice("/job:ps")
	a := op.Const(ps.WithDevice("/job:worker/task:1/cpu:0"), 1.0)
	b := op.Const(ps.WithDevice("/gpu:1"), 1.0)
	chosen := ps.WithDeviceFunc(func(n *graph.Node) string {
		if n.Op.Name == "Const" {
			return "/task:3"
		}
		return ""
	})
	near := ps.ColocateWith(a.Node)
	c := op.Neg(near, b)
	far := op.Neg(near.WithDevice("/task:9"), b)
	again := op.Neg(ps.ColocateWith(c.Node), b)
	for _, tt := range []struct {
		of     op.Output
		device string
		class  []string
	}{
		{a, "/job:worker/task:1/device:CPU:0", nil},
		{b, "/job:ps/device:GPU:1", nil},
		{op.Const(chosen, 1.0), "/job:ps/task:3", nil},
		{op.Neg(chosen, b), "/job:ps", nil},
		{op.Const(ps.WithoutDevices(), 1.0), "", nil},
		{c, "/job:worker/task:1/device:CPU:0", []string{"loc:@Const"}},
		{far, "/job:worker/task:1/device:CPU:0", []string{"loc:@Const"}},
		{again, "/job:worker/task:1/device:CPU:0", []string{"loc:@Const"}},
		{op.Neg(near.WithoutDevices(), b), "", nil},
	} {
		if n := tt.of.Node; n.Device != tt.device || !slices.Equal(n.Attrs.Strings("_class"), tt.class) {
			t.Errorf("%s is on %q with %v, want %q with %v", n.Name, n.Device, n.Attrs.Strings("_class"), tt.device, tt.class)
		}
	}
}

func TestControlDependencies(t *testing.T) {
	s := op.NewScope()
	a, b := op.NoOp(s), op.NoOp(s)
	after := s.WithControlDependencies(a, nil)
	both := after.WithControlDependencies(b, a)
	if got := op.NoOp(both).ControlInputs(); !slices.Equal(got, []*graph.Node{a, b}) {
		t.Errorf("runs after %v", got)
	}
	if got := op.NoOp(after).ControlInputs(); !slices.Equal(got, []*graph.Node{a}) {
		t.Errorf("the outer scope runs after %v", got)
	}
	if got := op.NoOp(both.WithoutControlDependencies()).ControlInputs(); len(got) != 0 {
		t.Errorf("runs after %v", got)
	}
}

func TestBuildErrorsAreReportedTogether(t *testing.T) {
	s := op.NewScope()
	a := op.Const(s, [][]float32{{1, 2}, {3, 4}})
	other := op.Const(op.NewScope(), float32(1))
	bad := op.MatMul(s, a, op.Const(s, []float64{1}))
	op.Relu(s, bad) // a consequence of the error above
	op.Neg(s, other)
	op.Neg(s, a.Node.Out(1))
	op.Const(s, map[string]int{})
	op.MatMul(s, a, op.Const(s, [][]float32{{1}}))
	s.WithDevice("/jobs:ps")
	s.Add("Nope", nil, nil)
	s.Add("Neg", nil, nil)
	s.Add("Neg", []op.Arg{op.One(a)}, opdef.Attrs{"T": tensor.Int32})
	_, err := s.Finalize()
	if err == nil {
		t.Fatal("no error is reported")
	}
	lines := strings.Split(err.Error(), "\n")
	want := []string{
		"MatMul: Input 1 of node MatMul was passed double from Const_1:0 incompatible with expected float",
		"Neg: input Const is of another graph",
		"Neg: node Const has 1 outputs, there is no output 1",
		"map[string]int",
		"MatMul: Dimensions must be equal, but are 2 and 1 for '{{node MatMul_1}}",
		"Malformed device specification '/jobs:ps'",
		"Nope: no such operation",
		"Neg: takes 1 arguments, got 0",
		"Neg: Input 0 of node Neg",
	}
	if len(lines) != len(want) {
		t.Fatalf("%d errors are reported, want %d:\n%v", len(lines), len(want), err)
	}
	for i, w := range want {
		if !strings.HasPrefix(lines[i], "scope_test.go:") || !strings.Contains(lines[i], w) {
			t.Errorf("got %q, want one in this file with %q", lines[i], w)
		}
	}
}

func TestZeroOutputAlone(t *testing.T) {
	s := op.NewScope()
	if out := op.Neg(s, op.Output{}); out.Node != nil {
		t.Error("a node was added")
	}
	if _, err := s.Finalize(); err == nil || !strings.Contains(err.Error(), "Neg: an input is the zero Output") {
		t.Errorf("got %v", err)
	}
}

func TestShapesAreInferred(t *testing.T) {
	s := op.NewScope()
	x := op.Placeholder(s, tensor.Float32, op.PlaceholderShape(tensor.MakePartial(-1, 2)))
	y := op.MatMul(s, x, op.Const(s, [][]float32{{1, 2, 3}, {4, 5, 6}}))
	if got := s.ShapeOf(y).String(); got != "[?,3]" {
		t.Errorf("the product has shape %s", got)
	}
}

// TestSeeds checks for the seeds that TensorFlow's Python API chooses in the same order of calls.
func TestSeeds(t *testing.T) {
	seed := func(v int64) *int64 { return &v }
	s := op.NewScope()
	check := func(opSeed *int64, want1, want2 int64) {
		t.Helper()
		if got1, got2 := s.Seeds(opSeed); got1 != want1 || got2 != want2 {
			t.Errorf("got %d, %d, want %d, %d", got1, got2, want1, want2)
		}
	}
	check(nil, 0, 0)
	check(seed(7), 87654321, 7)
	check(seed(-1), 87654321, 1<<31-2)
	s.SetSeed(5)
	check(nil, 5, 0)
	check(seed(9), 5, 9)
	check(nil, 5, 1)
	s.SetSeed(0)
	check(seed(0), 0, 1<<31-1)
}

func TestConstIsACopy(t *testing.T) {
	v := []float32{1, 2}
	c := op.Const(op.NewScope(), v)
	v[0] = 9
	if got := tensor.Values[float32](c.Node.Attrs.Tensor("value")); got[0] != 1 {
		t.Errorf("the constant changed to %v", got)
	}
}
