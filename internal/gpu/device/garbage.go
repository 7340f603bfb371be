package device

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/weft-ml/weft/internal/gpu/driver"
)

// garbage decides when to collect garbage for the memory of a device.
//
// Values such as tensor lists have no counted references: the garbage collector finds when their
// tensors are not used any more. It knows nothing of the memory of the device, so that a program
// whose lists have gigabytes there would not collect for a long time. So the garbage collector runs
// after lists have taken an eighth of the memory, and when an allocation finds none.
type garbage struct {
	held       atomic.Int64 // bytes that lists have taken since they caused a collection
	used       atomic.Bool  // there has been a list
	collecting atomic.Bool
	next       atomic.Int64 // time before which a failed allocation does not collect, Unix ns
}

const (
	// heldPart is the part of the memory that lists take between two collections.
	heldPart = 8
	// collectPause is the time after a collection that has not helped an allocation.
	collectPause = time.Second
	// cleanupTime is the longest wait for the end of cleanup functions, which takes microseconds
	// unless the machine is busy.
	cleanupTime = 100 * time.Millisecond
)

// Holds says that a value which only the garbage collector frees has begun to hold a tensor of
// size bytes on the device.
func (d *Device) Holds(size int) {
	g := &d.memory.garbage
	if size == 0 {
		return
	}
	g.used.Store(true)
	if g.held.Add(int64(size)) < d.opts.Memory/heldPart || d.memory.closed.Load() || !g.collecting.CompareAndSwap(false, true) {
		return
	}
	g.held.Store(0)
	d.moves.Go(func() {
		runtime.GC()
		g.collecting.Store(false)
	})
}

// take allocates from the pool. If there is no memory, it collects garbage, and then waits until
// others free memory.
func (m *memory) take(ctx context.Context, size int) (driver.Mem, error) {
	g := &m.garbage
	if !g.used.Load() {
		return m.pool.Alloc(ctx, size)
	}
	mem, err := m.pool.TryAlloc(size)
	if !errors.Is(err, driver.ErrOutOfMemory) {
		return mem, err
	}
	if now := time.Now().UnixNano(); now >= g.next.Load() {
		collect()
		if mem, err = m.pool.TryAlloc(size); !errors.Is(err, driver.ErrOutOfMemory) {
			return mem, err
		}
		g.next.Store(now + int64(collectPause))
	}
	return m.pool.Alloc(ctx, size)
}

// collect collects garbage and waits for cleanup functions, which run on other goroutines.
func collect() {
	done := make(chan struct{})
	runtime.AddCleanup(new(*int), func(c chan struct{}) { close(c) }, done)
	runtime.GC()
	select {
	case <-done:
	case <-time.After(cleanupTime):
	}
}
