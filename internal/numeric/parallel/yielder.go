package parallel

import (
	"time"

	"github.com/weft-ml/weft/internal/sys/mono"
	"github.com/weft-ml/weft/internal/sys/spin"
)

// A Yielder lets a goroutine that computes for long yield its core to threads that wait for one.
//
// Without it, the kernel preempts a computing thread only at a tick of its clock, which comes 250
// times a second: later than most steps end. A thread that was just woken, of this process or of a
// client on the same machine, would wait for that tick.
//
// The zero value is ready for use. It must not be used concurrently.
type Yielder struct {
	next int64 // time of the next yield, by mono.Nanos; 0 before the first MaybeYield
}

// yieldInterval is the shortest time between two yields. It is far below a clock tick (4 ms), and a
// yield that no thread takes costs less than 1% of it.
const yieldInterval = 100 * time.Microsecond

// MaybeYield yields the core if yieldInterval has passed since the last yield. It is meant to be
// called between pieces of work, and usually costs 30 ns. After a yield that another thread took,
// the goroutine computes for twice as long as it waited, so that it keeps two thirds of the core
// next to a thread that computes.
func (y *Yielder) MaybeYield() {
	now := mono.Nanos()
	if y.due(now) {
		spin.YieldThread()
		y.record(now, mono.Nanos())
	}
}

// due reports whether it is time to yield. The first call starts the interval, because a goroutine
// that has just begun may end soon.
func (y *Yielder) due(now int64) bool {
	if y.next == 0 {
		y.next = now + int64(yieldInterval)
	}
	return now >= y.next
}

// record schedules the next yield after one that lasted from from to to.
func (y *Yielder) record(from, to int64) { y.next = to + max(int64(yieldInterval), 2*(to-from)) }
