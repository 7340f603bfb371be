package train_test

import (
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/gradients"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/train"
)

// someGradients returns a dense, a sparse and a small gradient.
func someGradients(s *op.Scope) []train.GradientVariable {
	v := func(name string, shape ...int64) *train.Variable {
		return train.NewVariable(s, name, shape, tensor.Float32, train.Zeros)
	}
	return []train.GradientVariable{
		{Grad: gradients.Of(op.Const(s, []float32{3, -4})), Var: v("a", 2)},
		{Grad: gradients.Grad{Slices: &gradients.IndexedSlices{
			Values: op.Const(s, [][]float32{{6}, {-8}}), Indices: op.Const(s, []int32{1, 0}), Shape: op.Const(s, []int32{3, 1}),
		}}, Var: v("b", 3, 1)},
		{Grad: gradients.Of(op.Const(s, []float32{.1})), Var: v("c", 1)},
		{Var: v("d", 1)},
	}
}

// elements returns the values of the gradients.
func elements(t *testing.T, sess *weft.Session, grads []train.GradientVariable) [][]float32 {
	t.Helper()
	var all [][]float32
	for _, g := range grads {
		if g.Grad.IsNone() {
			all = append(all, nil)
			continue
		}
		o := g.Grad.Dense
		if g.Grad.Slices != nil {
			o = g.Grad.Slices.Values
		}
		out, err := sess.Run(t.Context(), nil, []op.Output{o}, nil)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, tensor.Values[float32](&out[0]))
	}
	return all
}

func near(a, b [][]float32) bool {
	return slices.EqualFunc(a, b, func(x, y []float32) bool {
		return slices.EqualFunc(x, y, func(p, q float32) bool { return math.Abs(float64(p-q)) < 1e-5 })
	})
}

// TestClip compares with gradients that TensorFlow computed.
func TestClip(t *testing.T) {
	s := newScope()
	grads := someGradients(s)
	byValue := train.ClipByValue(s, grads, -5, 0.05)
	byNorm := train.ClipByNorm(s, grads, 2)
	byAverage := train.ClipByAverageNorm(s, grads, 2)
	byGlobal, norm := train.ClipByGlobalNorm(s, grads, 2)
	huge, _ := train.ClipByGlobalNorm(s, []train.GradientVariable{{Grad: gradients.Of(op.Const(s, []float32{float32(math.Inf(1)), 1})), Var: grads[0].Var}}, 1)
	sess := session(t, s)
	for name, tt := range map[string]struct {
		grads []train.GradientVariable
		want  [][]float32
	}{
		"value":   {byValue, [][]float32{{.05, -4}, {.05, -5}, {.05}, nil}},
		"norm":    {byNorm, [][]float32{{1.2, -1.6}, {1.2, -1.6}, {.1}, nil}},
		"average": {byAverage, [][]float32{{2.4, -3.2}, {2.4, -3.2}, {.1}, nil}},
		"global":  {byGlobal, [][]float32{{0.5366348, -0.7155131}, {1.0732696, -1.4310262}, {0.01788783}, nil}},
	} {
		if got := elements(t, sess, tt.grads); !near(got, tt.want) {
			t.Errorf("clipped by %s: got %v, want %v", name, got, tt.want)
		}
	}
	out, err := sess.Run(t.Context(), nil, []op.Output{norm}, nil)
	if err != nil || math.Abs(float64(tensor.Value[float32](&out[0]))-11.180787) > 1e-5 {
		t.Errorf("the norm is %v, %v", out, err)
	}
	if got := elements(t, sess, huge)[0]; got[1] == got[1] {
		t.Errorf("an infinite gradient was clipped to %v, want NaN", got)
	}
}

func TestAverageGradients(t *testing.T) {
	s := newScope()
	grads := someGradients(s)
	other := slices.Clone(grads)
	other[0].Grad = gradients.Of(op.Const(s, []float32{1, 0}))
	other[2].Grad = gradients.Grad{}
	means := train.AverageGradients(s, grads, other)
	if means[1].Grad.Slices == nil {
		t.Fatal("the mean of sparse gradients is dense")
	}
	if got, want := elements(t, session(t, s), means), [][]float32{{2, -2}, {3, -4, 3, -4}, nil, nil}; !near(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestMovingAverages compares with averages that TensorFlow computed for the same updates.
func TestMovingAverages(t *testing.T) {
	for name, want := range map[string][][]float32{
		"plain":        {{1.6572051, 1.3427949}, {4.31441}},
		"with updates": {{3.2001, -0.20009995}, {7.4002}},
	} {
		for _, resource := range []bool{false, true} {
			var opts []train.VariableOption
			if resource {
				opts = append(opts, train.Resource())
			}
			s := newScope()
			w := train.NewVariable(s, "w", tensor.Shape{2}, tensor.Float32, train.Values([]float32{1, 2}), opts...)
			b := train.NewVariable(s, "b", tensor.Shape{1}, tensor.Float32, train.Values([]float32{3}), opts...)
			step := train.GlobalStep(s)
			changed := op.Group(s.Named("changed"), w.AssignAdd(s, op.Const(s, []float32{.5, -.5})), b.AssignAdd(s, op.Const(s, []float32{1})), step.AssignAdd(s, op.Const(s, int64(1))))
			averages := &train.MovingAverages{Decay: .9}
			after := s.WithControlDependencies(changed)
			if name == "with updates" {
				averages.Updates = step.Read(after)
			}
			update := averages.Apply(after)
			init := train.VariablesInitializer(s)
			sess := session(t, s)
			run(t, sess, init)
			for range 5 {
				run(t, sess, update)
			}
			got := [][]float32{}
			for _, v := range []*train.Variable{averages.Average(w), averages.Average(b)} {
				out, err := sess.Run(t.Context(), nil, []op.Output{v.Value}, nil)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, tensor.Values[float32](&out[0]))
			}
			if !near(got, want) {
				t.Errorf("%s, resource %v: the means are %v, want %v", name, resource, got, want)
			}
			names := averages.Restore(s)
			if want := map[string][]*train.Variable{
				"w/ExponentialMovingAverage": {w}, "b/ExponentialMovingAverage": {b}, "global_step": {step},
			}; !reflect.DeepEqual(names, want) {
				t.Errorf("the variables to restore are %v", names)
			}
		}
	}
}

func TestMovingAverageOfIntegers(t *testing.T) {
	s := newScope()
	v := train.NewVariable(s, "n", tensor.Shape{}, tensor.Int32, train.Zeros)
	var none *graph.Node
	if got := (&train.MovingAverages{Decay: .9}).Apply(s, v); got != none || s.Err() == nil {
		t.Errorf("got %v, %v", got, s.Err())
	}
}

// TestMovingAveragesOfParts restores the averages of a variable in three parts to one in two parts.
func TestMovingAveragesOfParts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m")
	s := newScope()
	w := train.NewPartitioned(s, "w", tensor.Shape{6, 2}, tensor.Float32, rows([]int32{0, 1}, []int32{2, 3}, []int32{4, 5}), 3)
	lower := make([]*graph.Node, len(w.Parts))
	for i, v := range w.Parts {
		lower[i] = v.AssignSub(s, v.Value)
	}
	update := (&train.MovingAverages{Decay: .5}).Apply(s.WithControlDependencies(lower...))
	init := train.VariablesInitializer(s)
	saver := train.NewSaver(s, train.SaverOptions{})
	sess := session(t, s)
	run(t, sess, init)
	run(t, sess, update)
	if err := saver.Write(t.Context(), sess, path); err != nil {
		t.Fatal(err)
	}

	s = newScope()
	w = train.NewPartitioned(s, "w", tensor.Shape{6, 2}, tensor.Float32, train.Zeros, 2)
	b := train.NewVariable(s, "b", tensor.Shape{}, tensor.Float32, train.Zeros, train.NotTrainable())
	names := (&train.MovingAverages{}).Restore(s)
	if want := map[string][]*train.Variable{"w/ExponentialMovingAverage": w.Parts, "b": {b}}; !reflect.DeepEqual(names, want) {
		t.Errorf("the variables to restore are %v", names)
	}
	delete(names, "b")
	saver = train.NewSaver(s, train.SaverOptions{Variables: names})
	whole := w.Value(s)
	sess = session(t, s)
	if err := saver.Restore(t.Context(), sess, path); err != nil {
		t.Fatal(err)
	}
	out, err := sess.Run(t.Context(), nil, []op.Output{whole}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := [][]float32{{0, .5}, {5, 5.5}, {10, 10.5}, {15, 15.5}, {20, 20.5}, {25, 25.5}}
	if got := out[0].Go(); !reflect.DeepEqual(got, any(want)) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestSeveralVariablesUnderOneName(t *testing.T) {
	s := newScope()
	a := train.NewVariable(s, "a", tensor.Shape{}, tensor.Float32, train.Zeros)
	b := train.NewVariable(s, "b", tensor.Shape{}, tensor.Float32, train.Zeros)
	train.NewSaver(s, train.SaverOptions{Variables: map[string][]*train.Variable{"x": {a, b}}})
	if s.Err() == nil {
		t.Error("no build error for two variables with the same name")
	}
}
