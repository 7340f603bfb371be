package local_test

import (
	"testing"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// TestFetchExecPrepare runs the same nodes through the short forms of a step.
func TestFetchExecPrepare(t *testing.T) {
	s := op.NewScope()
	x := op.Placeholder(s, tensor.Float32)
	v := op.VariableV2(s, tensor.Shape{}.Partial(), tensor.Float32)
	assign := op.Assign(s, v, x)
	sess, err := weft.NewSession("local", s.Graph())
	if err != nil {
		t.Fatal(err)
	}
	defer sess.Close()
	value := func(x float32) tensor.Tensor { return tensor.Scalar(x) }

	if err := sess.Exec(t.Context(), weft.Feeds{x: value(3)}, assign.Node); err != nil {
		t.Fatal(err)
	}
	out, err := sess.Fetch(t.Context(), nil, v)
	if err != nil || len(out) != 1 || out[0].Go() != float32(3) {
		t.Errorf("after Exec: got %v, %v, want 3", out, err)
	}
	square := op.Square(s, x)
	out, err = sess.Fetch(t.Context(), weft.Feeds{x: value(5)}, square, assign)
	if err != nil || len(out) != 2 || out[0].Go() != float32(25) || out[1].Go() != float32(5) {
		t.Errorf("Fetch of two outputs: got %v, %v, want 25 and 5", out, err)
	}
	add, err := sess.Prepare(t.Context(), weft.Step{Feeds: []graph.Output{x}, Fetches: []graph.Output{op.AddV2(s, v, x)}})
	if err != nil {
		t.Fatal(err)
	}
	if out, err = add.Run(t.Context(), value(2)); err != nil || out[0].Go() != float32(7) {
		t.Errorf("callable: got %v, %v, want 7", out, err)
	}
	if err := add.Close(); err != nil {
		t.Error(err)
	}
	if _, err := add.Run(t.Context(), value(2)); err == nil {
		t.Error("a closed callable runs")
	}
	if err := sess.Exec(t.Context(), weft.Feeds{x: tensor.Scalar(int32(1))}, assign.Node); status.CodeOf(err) != status.InvalidArgument {
		t.Errorf("Exec with a feed of another type: got %v, want InvalidArgument", err)
	}
}
