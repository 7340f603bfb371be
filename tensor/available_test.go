package tensor

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weft-ml/weft/internal/sys/memlimit"
	"github.com/weft-ml/weft/status"
)

// leave makes n tell how many bytes are left until the test ends.
func leave(t *testing.T, n func() int64) {
	old := left
	left = func() (int64, bool) { return n(), true }
	t.Cleanup(func() { left = old })
}

func TestMoreThanIsLeftIsRefused(t *testing.T) {
	dropFree()
	asked := 0
	leave(t, func() int64 { asked++; return minChecked })
	small := mustAlloc(t, Uint8, minChecked/2)
	small.Release()
	if asked > 0 {
		t.Error("memory is asked about for a small tensor")
	}
	x := mustAlloc(t, Uint8, minChecked)
	buf := x.buf
	if asked != 1 || len(buf.mem) != minChecked {
		t.Errorf("asked %d times for %d bytes", asked, len(buf.mem))
	}
	x.Release()
	asked = 0
	if x = mustAlloc(t, Uint8, minChecked); x.buf != buf || asked > 0 {
		t.Error("memory is asked about for a buffer that is there")
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
	leave(t, func() int64 { return 0 })
	if _, err := x.Clone(); status.CodeOf(err) != status.ResourceExhausted {
		t.Errorf("a clone: %v", err)
	}
	x.Release()
}

func TestSpareMemoryIsGivenBackFirst(t *testing.T) {
	x := mustAlloc(t, Uint8, minChecked)
	x.Release()
	var answers []int64
	leave(t, func() int64 {
		n := answers[0]
		answers = slices.Delete(answers, 0, 1)
		return n
	})
	// what garbage was is there at the second question
	answers = []int64{minChecked, 2 * minChecked}
	x = mustAlloc(t, Uint8, 2*minChecked)
	defer x.Release()
	class := classOf(minChecked)
	if b := freeLists[class].take(1); len(answers) > 0 || b != nil {
		t.Errorf("%d questions are left, and the buffer %p", len(answers), b)
	}
	answers = []int64{-int64(memlimit.Held())} // whatever of it is garbage, there is not enough
	if _, err := Alloc(Uint8, Shape{2 * minChecked}); err == nil || len(answers) > 0 {
		t.Errorf("%v with %d questions left", err, len(answers))
	}
}

// The next question waits until the memory for the one before is the process's.
func TestManyAskAtOnce(t *testing.T) {
	const fit = 3
	given, refused := 0, atomic.Int32{}
	leave(t, func() int64 { return int64(fit-given) * minChecked })
	var wg sync.WaitGroup
	for range 4 * fit {
		wg.Go(func() {
			if !allocIfAvailable(minChecked, func() { given++ }) {
				refused.Add(1)
			}
		})
	}
	wg.Wait()
	if given != fit || refused.Load() != 3*fit {
		t.Errorf("%d were given memory, %d were not", given, refused.Load())
	}
}
