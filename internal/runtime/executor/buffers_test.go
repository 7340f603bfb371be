package executor_test

import (
	"sync/atomic"
	"testing"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/runtime/executor"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// foreign returns a non-negative scalar whose memory is counted. freed is incremented when it is
// released.
func foreign(t testing.TB, v int8, freed *atomic.Int32) tensor.Tensor {
	t.Helper()
	mem := make([]byte, 8)
	mem[0] = byte(v)
	out, err := tensor.FromBytes(tensor.Int64, tensor.Shape{}, mem, tensor.NewForeign(mem, func() { freed.Add(1) }))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestBuffersAreReleased counts the buffers that are released by runs that succeed, fail or are
// cancelled.
func TestBuffersAreReleased(t *testing.T) {
	for _, op := range []string{"Identity", "Fail", "Wait"} {
		b := newBuilder(t)
		x, y := b.arg(0, tensor.Int64), b.arg(1, tensor.Int64)
		limit := b.enter("f", b.number(20), constEnter)
		always := b.enter("f", y, constEnter)
		out := b.loop("f", 3, []graph.Output{b.number(0), x},
			func(v []graph.Output) graph.Output { return b.add("", "Less2", nil, v[0], limit).Out(0) },
			func(v []graph.Output) []graph.Output {
				later := b.add("", "AddLater", nil, v[0], always).Out(0)
				onFalse, onTrue := b.sw(v[1], b.add("", "Less2", nil, later, limit).Out(0))
				if op == "Identity" {
					onTrue = b.typed(op, onTrue).Out(0)
				} else {
					onTrue = b.add("", op, nil, onTrue).Out(0)
				}
				return []graph.Output{b.sum(v[0], b.enter("f", y, constEnter)), b.merge(2, onFalse, onTrue).Out(0)}
			})
		b.ret(0, out[1])
		e := b.compile()
		var freed atomic.Int32
		for i := range int32(5) {
			step := newStep(t, nil)
			opts := executor.RunOptions{
				Args: []tensor.Tensor{foreign(t, 7, &freed), foreign(t, 1, &freed), foreign(t, 0, &freed)},
				Rets: make([]tensor.Tensor, 1),
			}
			if op == "Wait" {
				go step.Cancel(status.Cancelledf("enough"))
			}
			if err := e.Run(step, opts); (err == nil) != (op == "Identity") {
				t.Errorf("%s: %v", op, err)
			}
			opts.Rets[0].Release()
			if n := freed.Load(); n != 3*(i+1) {
				t.Fatalf("%s, run %d: %d buffers were released, want %d", op, i, n, 3*(i+1))
			}
		}
	}
}
