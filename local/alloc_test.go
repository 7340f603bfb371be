//go:build !race && !invariants

package local_test

import (
	"context"
	"testing"
	"time"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
)

// A step of one node allocates nothing but its result, one block for the list of values; the memory of a tensor that is
// released comes back. That its caller may give up, or that it has a limit, costs nothing as long as nobody waits. Under the
// race detector sync.Pool forgets at random.
func TestStepAllocatesNothingButItsResult(t *testing.T) {
	root := op.NewScope()
	constant := op.Const(root, float32(1))
	x := op.Placeholder(root, tensor.Float32)
	cancellable, cancel := context.WithCancel(t.Context())
	defer cancel()
	limited, cancelLimited := context.WithTimeout(t.Context(), time.Minute)
	defer cancelLimited()
	hour := []weft.Option{weft.WithTimeout(time.Hour)}
	for _, test := range []struct {
		name    string
		fetch   graph.Output
		feeds   []graph.Output
		fed     []tensor.Tensor
		ctx     context.Context
		options []weft.Option
		most    float64
	}{
		{"constant", constant, nil, nil, cancellable, nil, 1},
		{"negation", op.Neg(root, x), []graph.Output{x}, []tensor.Tensor{tensor.Scalar(float32(2))}, cancellable, nil, 1},
		{"constant with a limit", constant, nil, nil, cancellable, hour, 1},
		{"constant with a limit for a caller with less time", constant, nil, nil, limited, hour, 1},
	} {
		s, err := weft.NewSession("local", root.Graph(), test.options...)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		c, err := s.MakeCallable(t.Context(), test.feeds, []graph.Output{test.fetch}, nil)
		if err != nil {
			t.Fatal(err)
		}
		allocated := testing.AllocsPerRun(1000, func() {
			out, err := c.Run(test.ctx, test.fed...)
			if err != nil {
				t.Fatal(err)
			}
			out[0].Release()
		})
		if allocated > test.most {
			t.Errorf("%s: a step allocates %v times", test.name, allocated)
		}
	}
}
