package op_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
)

// small returns the definition of a graph in which y, colocated with x, is the sum of x and c, and
// has a control dependency on c.
func small(t *testing.T) *graph.Def {
	t.Helper()
	s := op.NewScope()
	x := op.Placeholder(s.Named("x").WithDevice("/job:ps/task:1"), tensor.Float32)
	c := op.Const(s.Named("c"), float32(1))
	op.Add(s.Named("y").ColocateWith(x.Node).WithControlDependencies(c.Node), x, c)
	g, err := s.Finalize()
	if err != nil {
		t.Fatal(err)
	}
	return g.Def()
}

func TestImport(t *testing.T) {
	s := op.NewScope()
	first := op.NoOp(s.Named("first"))
	v := op.Const(s.Named("v"), []float32{1, 2})
	nodes := s.SubScope("in").WithControlDependencies(first).WithDevice("/cpu:0").Import(small(t), op.ImportOptions{Inputs: map[string]op.Output{"x": v}})
	again := s.Import(small(t), op.ImportOptions{ClearDevices: true})
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	y := nodes["y"]
	if got := y.Input(0); got != v {
		t.Errorf("the input of y is %v, want v", got)
	}
	for _, tt := range []struct {
		n    *graph.Node
		want string
	}{
		{y, `in/y Add(v:0, in/c:0, ^in/c) on "/job:ps/task:1/device:CPU:0" with loc:@in/x`},
		{nodes["c"], `in/c Const(^first) on "/device:CPU:0" with `},
		{nodes["x"], `in/x Placeholder(^first) on "/job:ps/task:1/device:CPU:0" with `},
		{again["y"], `y Add(x:0, c:0, ^c) on "" with loc:@x`},
	} {
		var in []string
		for _, o := range tt.n.Inputs() {
			in = append(in, o.Node.Name+":0")
		}
		for _, c := range tt.n.ControlInputs() {
			in = append(in, "^"+c.Name)
		}
		got := tt.n.Name + " " + tt.n.Op.Name + "(" + strings.Join(in, ", ") + `) on "` + tt.n.Device + `" with ` +
			strings.Join(tt.n.Attrs.Strings("_class"), " ")
		if got != tt.want {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
	}
	if got := s.ShapeOf(y.Out(0)).String(); got != "[2]" {
		t.Errorf("y has shape %s", got)
	}
	if got := add(s.Named("x")); got != "x_1" {
		t.Errorf("a new node x is named %s", got)
	}
}

func TestImportBuildErrors(t *testing.T) {
	def := small(t)
	for name, tt := range map[string]struct {
		imported func(s *op.Scope) map[string]*graph.Node
		want     string
	}{
		"twice": {func(s *op.Scope) map[string]*graph.Node {
			s.Import(def, op.ImportOptions{})
			return s.Import(def, op.ImportOptions{})
		}, "'x', which was created"},
		"unused input": {func(s *op.Scope) map[string]*graph.Node {
			return s.Import(def, op.ImportOptions{Inputs: map[string]op.Output{"z:1": op.Const(s, 1.0)}})
		}, "does not use z:1"},
		"zero output": {func(s *op.Scope) map[string]*graph.Node {
			return s.Import(def, op.ImportOptions{Inputs: map[string]op.Output{"x": {}}})
		}, "zero Output"},
		"type": {func(s *op.Scope) map[string]*graph.Node {
			return s.Import(def, op.ImportOptions{Inputs: map[string]op.Output{"x": op.Const(s, int32(1))}})
		}, "was passed int32"},
	} {
		s := op.NewScope()
		if nodes := tt.imported(s); nodes != nil {
			t.Errorf("%s: nodes were added", name)
		}
		if err := s.Err(); err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "import_test.go:") {
			t.Errorf("%s: got %v, want one with %q", name, err, tt.want)
		}
	}
}

// TestImportTwice checks that a loop that is imported twice becomes two independent loops.
func TestImportTwice(t *testing.T) {
	s := withShapes()
	x := op.Placeholder(s.Named("x"), tensor.Float32, op.PlaceholderShape(tensor.MakePartial()))
	y := op.WhileLoop(s, []op.Output{x},
		func(s *op.Scope, v []op.Output) op.Output { return op.Less(s, v[0], op.Const(s, float32(100))) },
		func(s *op.Scope, v []op.Output) []op.Output {
			return []op.Output{op.Mul(s, v[0], op.Const(s, float32(3)))}
		})
	def := s.Graph().Def()
	s = withShapes()
	feeds, fetches := map[op.Output]tensor.Tensor{}, []op.Output{}
	for i, name := range []string{"a", "b"} {
		nodes := s.SubScope(name).Import(def, op.ImportOptions{})
		if err := s.Err(); err != nil {
			t.Fatal(err)
		}
		feeds[nodes["x"].Out(0)] = tensor.Scalar(float32(i + 1))
		fetches = append(fetches, nodes[y[0].Node.Name].Out(0))
	}
	if got := run(t, s, feeds, fetches); !reflect.DeepEqual(got, []any{float32(243), float32(162)}) {
		t.Errorf("got %v", got)
	}
}
