package tensor

import (
	"runtime"
	"testing"
	"time"
)

// A released large buffer is reused by the next allocation, on any processor. The garbage collector
// frees it if no allocation needs it.
func TestFreeList(t *testing.T) {
	for _, size := range []int64{1<<20 - 100, 1 << 20, 5<<20 + 1} {
		x := mustAlloc(t, Uint8, size)
		buf := x.buf
		x.Release()
		again := make(chan *Buffer)
		go func() {
			runtime.LockOSThread() // a thread of its own, which ends with the goroutine
			y, err := Alloc(Uint8, Shape{size})
			if err != nil {
				t.Error(err)
			}
			again <- y.buf
			y.Release()
		}()
		if <-again != buf {
			t.Errorf("a buffer of %d bytes is not used again", size)
		}
		gone := make(chan struct{})
		runtime.AddCleanup(buf, func(ch chan struct{}) { close(ch) }, gone)
		for end := time.Now().Add(time.Minute); ; {
			runtime.GC()
			select {
			case <-gone:
			case <-time.After(time.Millisecond):
				if time.Now().Before(end) {
					continue
				}
				t.Errorf("a buffer of %d bytes is kept forever", size)
			}
			break
		}
	}
}

func TestDropSpare(t *testing.T) {
	x := mustAlloc(t, Uint8, 3<<20)
	buf := x.buf
	x.Release()
	dropFree()
	y := mustAlloc(t, Uint8, 3<<20)
	defer y.Release()
	if y.buf == buf {
		t.Error("a buffer is used again that was dropped")
	}
}
