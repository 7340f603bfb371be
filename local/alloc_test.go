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

// A step of one node allocates its result and the list of values, and reuses the memory of released
// tensors. A cancellable context or a timeout costs nothing while no goroutine waits for its end.
// The race detector makes sync.Pool drop objects at random.
func TestStepAllocatesNothingButItsResult(t *testing.T) {
	root := op.NewScope()
	constant := op.Const(root, float32(1))
	x := op.Placeholder(root, tensor.Float32)
	cancellable, cancel := context.WithCancel(t.Context())
	defer cancel()
	limited, cancelLimited := context.WithTimeout(t.Context(), time.Minute)
	defer cancelLimited()
	hour := []weft.SessionOption{weft.WithTimeout(time.Hour)}
	for _, test := range []struct {
		name    string
		fetch   graph.Output
		feeds   []graph.Output
		fed     []tensor.Tensor
		ctx     context.Context
		options []weft.SessionOption
	}{
		{"constant", constant, nil, nil, cancellable, nil},
		{"negation", op.Neg(root, x), []graph.Output{x}, []tensor.Tensor{tensor.Scalar(float32(2))}, cancellable, nil},
		{"constant with a limit", constant, nil, nil, cancellable, hour},
		{"constant with a limit for a caller with less time", constant, nil, nil, limited, hour},
	} {
		s, err := weft.NewSession("local", root.Graph(), test.options...)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		c, err := s.Prepare(t.Context(), weft.Step{Feeds: test.feeds, Fetches: []graph.Output{test.fetch}})
		if err != nil {
			t.Fatal(err)
		}
		feeds := map[graph.Output]tensor.Tensor{}
		for i, at := range test.feeds {
			feeds[at] = test.fed[i]
		}
		fetches := []graph.Output{test.fetch}
		for way, run := range map[string]func() ([]tensor.Tensor, error){
			"callable": func() ([]tensor.Tensor, error) { return c.Run(test.ctx, test.fed...) },
			"run":      func() ([]tensor.Tensor, error) { return s.Run(test.ctx, feeds, fetches, nil) },
		} {
			allocated := testing.AllocsPerRun(1000, func() {
				out, err := run()
				if err != nil {
					t.Fatal(err)
				}
				out[0].Release()
			})
			if allocated > 1 {
				t.Errorf("%s, %s: a step allocates %v times", test.name, way, allocated)
			}
		}
	}
}
