package gradients_test

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/weft-ml/weft/gradients"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
)

// TestPaths checks which nodes of a graph gradients pass through.
func TestPaths(t *testing.T) {
	checkRules(t, []ruleCase{
		{"Add/twice", []input{in(3)}, one(func(s *op.Scope, x op.Output) op.Output { return op.Add(s, x, x) })},
		{"Mul/diamond", []input{in(3)}, one(func(s *op.Scope, x op.Output) op.Output {
			return op.Mul(s, op.Exp(s, x), op.Add(s, op.Sin(s, x), x))
		})},
		{"Mul/several ys", []input{in(3), in(3)}, func(s *op.Scope, x []op.Output) []op.Output {
			y := op.Mul(s, x[0], x[1])
			return []op.Output{y, op.Exp(s, y), op.Identity(s, x[0])}
		}},
		{"Mul/independent", []input{in(3), in(3)}, func(s *op.Scope, x []op.Output) []op.Output { return []op.Output{op.Exp(s, x[1])} }},
		{"Cast/integers", []input{in(3)}, one(func(s *op.Scope, x op.Output) op.Output {
			return op.Cast(s, op.Cast(s, op.Add(s, x, op.Const(s, 3.0)), tensor.Int32), tensor.Float64)
		})},
	})
}

func TestStop(t *testing.T) {
	s := op.NewScope()
	x := op.Const(s, 2.0)
	y := op.Square(s, x)
	z := op.Mul(s, x, y)
	grads := gradients.Compute(s, []op.Output{z}, []op.Output{x, y}, gradients.Stop(y))
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	if n := grads[0].Dense.Node; n == nil || n.Op.Name != "Mul" {
		t.Errorf("the gradient by x is %v, want y times the initial one", n)
	}
	if !grads[1].IsNone() {
		t.Error("the gradient passes what it should stop at")
	}
}

// TestNames checks that nodes of gradients have TensorFlow's names.
func TestNames(t *testing.T) {
	s := op.NewScope()
	x, w := op.Const(s.Named("x"), [][]float32{{1}}), op.Const(s.Named("w"), [][]float32{{1}})
	y := op.MatMul(s.Named("layer/y"), x, w)
	var got []string
	for range 2 {
		for _, g := range gradients.Compute(s, []op.Output{y}, []op.Output{x, w}, gradients.Gate()) {
			got = append(got, g.Dense.Node.Name)
		}
	}
	want := "gradients/layer/y_grad/tuple/control_dependency gradients/layer/y_grad/tuple/control_dependency_1 " +
		"gradients_1/layer/y_grad/tuple/control_dependency gradients_1/layer/y_grad/tuple/control_dependency_1"
	if have := strings.Join(got, " "); have != want {
		t.Errorf("got %s, want %s", have, want)
	}
}

func TestColocate(t *testing.T) {
	s := op.NewScope()
	x := op.Const(s, 1.0)
	y := op.Exp(s.WithDevice("/job:worker/task:1"), x)
	near := gradients.Compute(s, []op.Output{y}, []op.Output{x}, gradients.Colocate())[0].Dense.Node
	if near.Device != "/job:worker/task:1" || near.Attrs.Strings("_class")[0] != "loc:@Exp" {
		t.Errorf("the gradient is on %q with %v", near.Device, near.Attrs.Strings("_class"))
	}
	if far := gradients.Compute(s, []op.Output{y}, []op.Output{x})[0].Dense.Node; far.Device != "" {
		t.Errorf("without the option it is on %q", far.Device)
	}
}

func TestMistakes(t *testing.T) {
	for _, tt := range []struct {
		name  string
		build func(s *op.Scope)
		want  string
	}{
		{"no rule", func(s *op.Scope) {
			x := op.Const(s.Named("x"), 1.0)
			gradients.Compute(s, []op.Output{op.IgammaGradA(s.Named("y"), x, x)}, []op.Output{x})
		}, "No gradient defined for operation 'y' (op type: IgammaGradA)"},
		{"zero output", func(s *op.Scope) { gradients.Compute(s, []op.Output{{}}, nil) }, "one of the outputs is the zero Output"},
		{"initial gradients", func(s *op.Scope) {
			x := op.Const(s, 1.0)
			gradients.Compute(s, []op.Output{x}, []op.Output{x}, gradients.Initial())
		}, "0 initial gradients for 1 outputs"},
		{"unknown shape", func(s *op.Scope) {
			gradients.Densify(s, gradients.Grad{Slices: &gradients.IndexedSlices{}})
		}, "IndexedSlices of unknown shape"},
	} {
		s := op.NewScope()
		tt.build(s)
		if err := s.Err(); err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "gradients_test.go:") {
			t.Errorf("%s: got %v, want one of this file with %q", tt.name, err, tt.want)
		}
	}
}

func TestPairwise(t *testing.T) {
	s := op.NewScope()
	x := op.Const(s, 2.0)
	y := op.AddN(s, []op.Output{op.Square(s, x), op.Exp(s, x), x, op.Neg(s, x)})
	sum := gradients.Compute(s, []op.Output{y}, []op.Output{x}, gradients.Pairwise())[0].Dense
	last := sum.Node
	for range 3 { // three sums of two for four contributions
		if last.Op.Name != "AddN" || last.NumInputs() != 2 {
			t.Fatalf("%s has %d inputs, want an AddN of 2", last.Op.Name, last.NumInputs())
		}
		last = last.Input(0).Node
	}
	if got, want := run(s, nil, sum)[0].Go(), 4+math.Exp(2); math.Abs(got.(float64)-want) > 1e-12 {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestZeros(t *testing.T) {
	s := op.NewScope()
	x, other, number := op.Const(s, []float32{1, 2}), op.Const(s, []float32{3, 4}), op.Const(s, int32(5))
	handle := op.VarHandleOp(s, tensor.Float32, tensor.MakePartial(3))
	assign := op.AssignVariableOp(s, handle, op.Const(s, []float32{1, 2, 3}))
	grads := gradients.Compute(s.WithControlDependencies(assign), []op.Output{op.Square(s, x)}, []op.Output{x, other, number, handle}, gradients.Zeros())
	if !grads[2].IsNone() {
		t.Error("an integer has a gradient")
	}
	out := run(s, nil, grads[0].Dense, grads[1].Dense, grads[3].Dense)
	if got := []any{out[0].Go(), out[1].Go(), out[2].Go()}; !reflect.DeepEqual(got, []any{[]float32{2, 4}, []float32{0, 0}, []float32{0, 0, 0}}) {
		t.Errorf("got %v", got)
	}
}

func TestCheckFindsWrongRules(t *testing.T) {
	if !gradients.HasRule("Bitcast") {
		gradients.Register(func(c *gradients.Call) []gradients.Grad { return []gradients.Grad{c.Grad(0)} }, "Bitcast")
	}
	c := ruleCase{"Bitcast", []input{in(3)}, one(func(s *op.Scope, x op.Output) op.Output {
		return op.Mul(s, op.Bitcast(s, x, tensor.Float64), op.Const(s, 2.0))
	})}
	if diff, limit := checkRule(t, c); diff > limit {
		t.Errorf("a right rule is %g off", diff)
	}
	c.build = one(func(s *op.Scope, x op.Output) op.Output { return op.StopGradient(s, x) })
	if diff, _ := checkRule(t, c); diff < 0.4 {
		t.Errorf("a wrong gradient is only %g off", diff)
	}
}
