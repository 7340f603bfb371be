package data

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// A buffer that is filled ahead of requests ends at the limit of the memory.
func TestMemoryAhead(t *testing.T) {
	defer membudget.SetLimit(membudget.Limit())
	membudget.SetLimit(64 << 20)
	forever := &rangeDataset{spec{types: []tensor.DType{tensor.Int64}}, 0, math.MaxInt64 - 1, 1}
	it := &prefetchIterator{
		source: source{input: &rangeIterator{d: forever, n: forever.count()}}, d: &prefetchDataset{size: 1 << 40}, more: make(chan struct{}),
	}
	lifetime, cancel := context.WithTimeout(t.Context(), 4*time.Second)
	defer cancel()
	it.work(&run{lifetime: lifetime}, make(chan struct{}))
	if last := it.buffer[len(it.buffer)-1]; status.CodeOf(last.err) != status.ResourceExhausted {
		t.Errorf("the last of %d results: %v", len(it.buffer), last.err)
	}
}

// A request for the state of an iterator does not wait for elements that do not come.
func TestStateAheadEndsWithStep(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	env := kerneltest.NewEnv()
	env.Step.Context = ctx
	it := &prefetchIterator{filled: make(chan struct{})}
	a := &archive{run: newRun(&kernel.Context{Step: env.Step, Device: env.Device}, t.Context(), &cleanups{})}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		it.state(a)
	}()
	select {
	case <-ended:
	case <-time.After(5 * time.Second):
		t.Fatal("the request goes on")
	}
	if status.CodeOf(a.err) != status.DeadlineExceeded {
		t.Errorf("got %v", a.err)
	}
}
