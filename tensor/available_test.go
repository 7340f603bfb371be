package tensor

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weft-ml/weft/internal/sys/memlimit"
	"github.com/weft-ml/weft/status"
)

// setLeft makes n the source of the number of available bytes until the test ends.
func setLeft(t *testing.T, n func() int64) {
	old := left
	left = func() (int64, bool) { return n(), true }
	t.Cleanup(func() { left = old })
}

func TestMoreThanIsLeftIsRefused(t *testing.T) {
	dropFree()
	queries := 0
	setLeft(t, func() int64 { queries++; return minChecked })
	small := mustAlloc(t, Uint8, minChecked/2)
	small.Release()
	if queries > 0 {
		t.Error("available memory was queried for a small tensor")
	}
	x := mustAlloc(t, Uint8, minChecked)
	buf := x.buf
	if queries != 1 || len(buf.mem) != minChecked {
		t.Errorf("%d queries, buffer of %d bytes", queries, len(buf.mem))
	}
	x.Release()
	queries = 0
	if x = mustAlloc(t, Uint8, minChecked); x.buf != buf || queries > 0 {
		t.Error("available memory was queried, or a free buffer was not reused")
	}
	for _, tt := range []struct {
		dtype DType
		n     int64
		want  string
	}{
		{Float32, minChecked/4 + 1, "OOM when allocating tensor with shape[16777217] and type float"},
		{String, minChecked/16 + 1, "OOM when allocating tensor with shape[4194305] and type string"},
		{Variant, minChecked/16 + 1, "OOM when allocating tensor with shape[4194305] and type variant"},
		{Resource, minChecked/8 + 1, "OOM when allocating tensor with shape[8388609] and type resource"},
	} {
		if _, err := Alloc(tt.dtype, Shape{tt.n}); status.CodeOf(err) != status.ResourceExhausted || err.Error() != tt.want {
			t.Errorf("%v: %v", tt.dtype, err)
		}
	}
	setLeft(t, func() int64 { return 0 })
	if _, err := x.Clone(); status.CodeOf(err) != status.ResourceExhausted {
		t.Errorf("a clone: %v", err)
	}
	x.Release()
}

func TestFreeListsAreDroppedFirst(t *testing.T) {
	x := mustAlloc(t, Uint8, minChecked)
	x.Release()
	var answers []int64
	setLeft(t, func() int64 {
		n := answers[0]
		answers = slices.Delete(answers, 0, 1)
		return n
	})
	// the memory of collected garbage is available at the second query
	answers = []int64{minChecked, 2 * minChecked}
	x = mustAlloc(t, Uint8, 2*minChecked)
	defer x.Release()
	class := classOf(minChecked)
	if b := freeLists[class].take(1); len(answers) > 0 || b != nil {
		t.Errorf("%d queries were not made; buffer in the free list: %p", len(answers), b)
	}
	answers = []int64{-int64(memlimit.Held())} // not enough, even if all held memory were garbage
	if _, err := Alloc(Uint8, Shape{2 * minChecked}); err == nil || len(answers) > 0 {
		t.Errorf("got %v; %d queries were not made", err, len(answers))
	}
}

// TestConcurrentAllocations checks that a query waits until the memory of the previous allocation
// is in use.
func TestConcurrentAllocations(t *testing.T) {
	const fit = 3
	granted, refused := 0, atomic.Int32{}
	setLeft(t, func() int64 { return int64(fit-granted) * minChecked })
	var wg sync.WaitGroup
	for range 4 * fit {
		wg.Go(func() {
			if !allocIfAvailable(minChecked, func() { granted++ }) {
				refused.Add(1)
			}
		})
	}
	wg.Wait()
	if granted != fit || refused.Load() != 3*fit {
		t.Errorf("%d allocations succeeded, %d failed", granted, refused.Load())
	}
}
