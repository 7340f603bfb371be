package data

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// A request that takes many elements ends when its step does.
func TestLongRequestsEnd(t *testing.T) {
	b := newBench(t)
	forever := b.count(0, math.MaxInt64-1)
	none := b.count(0, 0)
	large := num(math.MaxInt64 / 4)
	no := tensor.Scalar(false)
	for name, d := range map[string]tensor.Tensor{
		"skip":    b.make("SkipDataset", forever, large),
		"batch":   b.make("BatchDatasetV2", forever, num(1<<40), no),
		"shuffle": b.make("ShuffleDataset", forever, num(1<<40), num(1), num(1)),
		"repeat":  b.make("RepeatDataset", none, large),
		"rebatch": b.make("UnbatchDataset", b.make("RepeatDataset", b.make("BatchDatasetV2", none, num(1), no), large)),
	} {
		it := b.iterator(name, d)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		b.env.Step.Context = ctx //nolint:fatcontext // each step has its own
		_, err := b.run("next", "IteratorGetNext", b.attrs(), it)
		cancel()
		b.env.Step.Context = t.Context()
		if code := status.CodeOf(err); code != status.DeadlineExceeded && code != status.Cancelled {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The order of all elements, which may be a billion, is drawn within a step. If that ends, a later
// step draws it.
func TestRandomAccessOfShuffleEnds(t *testing.T) {
	b := newBench(t)
	d := b.make("ShuffleDataset", b.count(0, 9), num(10), num(1), num(2))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	b.env.Step.Context = ctx
	if _, err := b.run("at", "GetElementAtIndex", b.attrs(), d, num(3)); status.CodeOf(err) != status.Cancelled {
		t.Errorf("in a step that has ended: %v", err)
	}
	b.env.Step.Context = t.Context()
	if _, err := b.run("again", "GetElementAtIndex", b.attrs(), d, num(3)); err != nil {
		t.Error(err)
	}
}

// Iterators ask for the memory of their goroutines: a chain of stages that have the one before
// twice has exponentially many.
func TestGoroutinesAskForMemory(t *testing.T) {
	b := newBench(t)
	d := b.count(0, 3)
	fastest := b.iterator("fastest", b.make("ChooseFastestDataset", d, d))
	ahead := b.iterator("ahead", b.make("PrefetchDataset", d, num(1)))
	defer membudget.SetLimit(membudget.Limit())
	membudget.SetLimit(1 << 20)
	if membudget.Take(1 << 20) {
		t.Fatal("there is memory")
	}
	for _, it := range []tensor.Tensor{fastest, ahead} {
		if _, err := b.run("next", "IteratorGetNext", b.attrs(), it); status.CodeOf(err) != status.ResourceExhausted {
			t.Error(err)
		}
	}
}
