package tensor

import (
	"runtime"
	"testing"
	"time"
)

// TestFreeList checks that the next allocation, on any thread, reuses a released large buffer, and
// that the garbage collector frees the buffer if no allocation reuses it.
func TestFreeList(t *testing.T) {
	for _, size := range []int64{1<<20 - 100, 1 << 20, 5<<20 + 1} {
		x := mustAlloc(t, Uint8, size)
		buf := x.buf
		x.Release()
		again := make(chan *Buffer)
		go func() {
			runtime.LockOSThread() // another thread, which ends with the goroutine
			y, err := Alloc(Uint8, Shape{size})
			if err != nil {
				t.Error(err)
			}
			again <- y.buf
			y.Release()
		}()
		if <-again != buf {
			t.Errorf("a buffer of %d bytes is not reused", size)
		}
		freed := make(chan struct{})
		runtime.AddCleanup(buf, func(ch chan struct{}) { close(ch) }, freed)
		for end := time.Now().Add(time.Minute); ; {
			runtime.GC()
			select {
			case <-freed:
			case <-time.After(time.Millisecond):
				if time.Now().Before(end) {
					continue
				}
				t.Errorf("a buffer of %d bytes is not freed", size)
			}
			break
		}
	}
}

func TestDropFree(t *testing.T) {
	x := mustAlloc(t, Uint8, 3<<20)
	buf := x.buf
	x.Release()
	dropFree()
	y := mustAlloc(t, Uint8, 3<<20)
	defer y.Release()
	if y.buf == buf {
		t.Error("a dropped buffer was reused")
	}
}
