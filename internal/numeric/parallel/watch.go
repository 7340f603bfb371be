package parallel

import (
	"os"
	"runtime"
	"sync/atomic"
	"time"
)

// A thread that has gone to sleep takes 5 µs to wake where its core has something else to do, 50 µs
// where the core rests, and several hundred on some virtual machines. Who expects something sooner
// than that had better look for it.

// EnvWatch is the environment variable that keeps a process from looking, with the value "off".
const EnvWatch = "WEFT_BUSY_WAIT"

// mayWatch says that the process has a core to spare. Of a single one, looking takes the time of
// who is waited for.
var mayWatch = runtime.GOMAXPROCS(0) > 1 && os.Getenv(EnvWatch) != "off"

const (
	// slow is how long others take a core that compute. Who only answers takes less.
	slow = time.Millisecond
	// strikes is how often in a row that says that the machine has more to do than cores, and rest
	// for how long.
	strikes = 3
	rest    = 50 * time.Millisecond
)

// watcher is who looks: one goroutine of the process at a time.
type watcher struct {
	taken   atomic.Bool
	strikes int          // of who has taken it; how often in a row others computed meanwhile
	rests   atomic.Int64 // until when nobody looks, in nanoseconds since epoch
}

var watch watcher

// Watch looks for something until it is there, for at most limit, and reports whether it is. It
// gives up at once where looking would keep others from their work: while goroutines of the process
// compute, one looks already, or other programs want the cores. Other threads may run between any
// two looks.
func Watch(limit time.Duration, there func() bool) bool {
	if !mayWatch || computing.Load() > 0 {
		return false
	}
	start := int64(time.Since(epoch))
	if start < watch.rests.Load() || !watch.taken.CompareAndSwap(false, true) {
		return false
	}
	defer watch.taken.Store(false)
	for now := start; now-start < int64(limit) && computing.Load() == 0; {
		if there() {
			watch.strikes = 0
			return true
		}
		yield()
		before := now
		now = int64(time.Since(epoch))
		if watch.interrupted(now-before, now) {
			return there()
		}
	}
	return false
}

// interrupted takes note of how long others had the core, and reports whether they compute.
func (w *watcher) interrupted(took, now int64) bool {
	if took <= int64(slow) {
		return false
	}
	if w.strikes++; w.strikes >= strikes {
		w.rests.Store(now + int64(rest))
	}
	return true
}
