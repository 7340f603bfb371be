// Package spin provides bounded busy-waiting for events that are expected sooner than a sleeping
// thread can be woken.
//
// The simple design blocks in the kernel until the event occurs. Waking the thread then takes 5 µs
// if its core is busy with something else, 50 µs if the core is idle, and several hundred on some
// virtual machines. A step of three hops pays this six times. Busy-waiting avoids the wake-up, but
// takes a core from other goroutines and programs. [Until] therefore observes these limits:
//
//  1. A wait lasts at most as long as its caller allows.
//  2. At most one goroutine of the process spins at a time.
//  3. A wait ends when its caller reports that goroutines of the process compute.
//  4. The thread yields its core between any two checks. If that takes longer than 1 ms, another
//     program computes on the core, and the wait ends. After three such preemptions in a row no
//     goroutine spins for 50 ms.
//
// Limits 2 and 4 are about the cores of the process, so the state is process-wide: servers and
// clients in one process must not each claim a core.
package spin

import (
	"os"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/weft-ml/weft/internal/sys/mono"
)

// EnvBusyWait is the environment variable that disables busy-waiting if its value is "off".
const EnvBusyWait = "WEFT_BUSY_WAIT"

const (
	// preemption is the duration of a yield above which another program is taken to compute on the
	// core. A thread that only answers a request holds the core for less.
	preemption = time.Millisecond
	// maxPreemptions is the number of preemptions in a row after which the machine is taken to have
	// more runnable threads than cores.
	maxPreemptions = 3
	// coolDown is how long no goroutine spins after maxPreemptions.
	coolDown = 50 * time.Millisecond
)

// process is the spinner of this process.
var process = spinner{enabled: runtime.GOMAXPROCS(0) > 1 && os.Getenv(EnvBusyWait) != "off"}

// Until calls ready repeatedly until it returns true, for at most limit, and reports whether it
// did. It returns false early, possibly without a call of ready, if spinning would take a core from
// other work: see the limits in the package comment. Busy reports whether goroutines of the process
// compute. Until may be called concurrently; ready and busy must not block.
func Until(limit time.Duration, busy, ready func() bool) bool {
	return process.until(limit, busy, ready)
}

// spinner lets one goroutine at a time busy-wait.
type spinner struct {
	// false if the process has a single core, which the awaited event needs, or the user disabled
	// busy-waiting
	enabled     bool
	spinning    atomic.Bool  // held by the goroutine that spins
	preemptions int          // in a row; guarded by spinning
	coolUntil   atomic.Int64 // end of the cool-down, by mono.Nanos
}

func (s *spinner) until(limit time.Duration, busy, ready func() bool) bool {
	if !s.enabled || busy() {
		return false
	}
	start := mono.Nanos()
	if start < s.coolUntil.Load() || !s.spinning.CompareAndSwap(false, true) {
		return false
	}
	defer s.spinning.Store(false)
	for now := start; now-start < int64(limit) && !busy(); {
		if ready() {
			s.preemptions = 0
			return true
		}
		YieldThread()
		before := now
		now = mono.Nanos()
		if s.preempted(now-before, now) {
			return ready()
		}
	}
	return false
}

// preempted reports whether a yield of took nanoseconds was a preemption, and starts the cool-down
// after maxPreemptions of them.
func (s *spinner) preempted(took, now int64) bool {
	if took <= int64(preemption) {
		return false
	}
	if s.preemptions++; s.preemptions >= maxPreemptions {
		s.coolUntil.Store(now + int64(coolDown))
	}
	return true
}
