//go:build !race && !invariants

package local_test

import (
	"context"
	"testing"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
)

// A step of one node allocates nothing but its result, one block for the list of values; the memory of a tensor that is
// released comes back. That its caller may give up costs nothing as long as nobody waits. Under the race detector
// sync.Pool forgets at random.
func TestStepAllocatesNothingButItsResult(t *testing.T) {
	root := op.NewScope()
	constant := op.Const(root, float32(1))
	x := op.Placeholder(root, tensor.Float32)
	s, err := weft.NewSession("local", root.Graph())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	cancellable, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, test := range []struct {
		name  string
		fetch graph.Output
		feeds []graph.Output
		fed   []tensor.Tensor
	}{
		{"constant", constant, nil, nil},
		{"negation", op.Neg(root, x), []graph.Output{x}, []tensor.Tensor{tensor.Scalar(float32(2))}},
	} {
		c, err := s.MakeCallable(t.Context(), test.feeds, []graph.Output{test.fetch}, nil)
		if err != nil {
			t.Fatal(err)
		}
		allocated := testing.AllocsPerRun(1000, func() {
			out, err := c.Run(cancellable, test.fed...)
			if err != nil {
				t.Fatal(err)
			}
			out[0].Release()
		})
		if allocated > 1 {
			t.Errorf("%s: a step allocates %v times", test.name, allocated)
		}
	}
}
