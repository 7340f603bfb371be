package gradients_test

import (
	"reflect"
	"testing"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/gradients"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
)

// TestHandles differentiates by the handle of a resource variable.
func TestHandles(t *testing.T) {
	for _, tt := range []struct {
		name  string
		build func(s *op.Scope, handle op.Output) op.Output
		want  [][]float32
	}{
		{"ReadVariableOp", func(s *op.Scope, h op.Output) op.Output { return op.Square(s, op.ReadVariableOp(s, h, tensor.Float32)) },
			[][]float32{{2, 4}, {6, 8}, {10, 12}}},
		{"ResourceGather", func(s *op.Scope, h op.Output) op.Output {
			return op.Square(s, op.ResourceGather(s, h, op.Const(s, [][]int64{{2, 0}, {2, 2}}), tensor.Float32))
		}, [][]float32{{2, 4}, {0, 0}, {30, 36}}},
		{"ResourceGatherNd", func(s *op.Scope, h op.Output) op.Output {
			return op.Square(s, op.ResourceGatherNd(s, h, op.Const(s, [][]int32{{2, 0}, {0, 1}}), tensor.Float32))
		}, [][]float32{{0, 4}, {0, 0}, {10, 0}}},
	} {
		markChecked(tt.name)
		s := op.NewScope()
		handle := op.VarHandleOp(s, tensor.Float32, tensor.MakePartial(3, 2))
		assign := op.AssignVariableOp(s, handle, op.Const(s, [][]float32{{1, 2}, {3, 4}, {5, 6}}))
		grads := gradients.Compute(s, []op.Output{tt.build(s, handle)}, []op.Output{handle})
		dense := gradients.Densify(s, grads[0])
		if got, want := grads[0].Slices != nil, tt.name == "ResourceGather"; got != want {
			t.Errorf("%s: the gradient is sparse: %v", tt.name, got)
		}
		g, err := s.Finalize()
		if err != nil {
			t.Fatal(err)
		}
		sess, err := weft.NewSession("local", g)
		if err != nil {
			t.Fatal(err)
		}
		defer sess.Close()
		if _, err := sess.Run(t.Context(), nil, nil, []*graph.Node{assign}); err != nil {
			t.Fatal(err)
		}
		out, err := sess.Run(t.Context(), nil, []op.Output{dense}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := out[0].Go(); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
}

// TestReferences differentiates by a reference to a variable.
func TestReferences(t *testing.T) {
	markChecked("RefIdentity", "DebugGradientRefIdentity")
	s := op.NewScope()
	ref := op.VariableV2(s, tensor.MakePartial(), tensor.Float64)
	y := op.Square(s, op.DebugGradientRefIdentity(s, op.RefIdentity(s, op.Assign(s, ref, op.Const(s, 3.0)))))
	dy := gradients.Compute(s, []op.Output{y}, []op.Output{y.Node.Input(0).Node.Input(0).Node.Input(0)})[0].Dense
	sess, err := weft.NewSession("local", s.Graph())
	if err != nil {
		t.Fatal(err)
	}
	defer sess.Close()
	out, err := sess.Run(t.Context(), nil, []op.Output{dy}, nil)
	if err != nil || out[0].Go() != 6.0 {
		t.Errorf("got %v, %v, want 6", out, err)
	}
}
