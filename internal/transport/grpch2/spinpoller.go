package grpch2

import (
	"net"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/sys/spin"
)

// spinLimit bounds how long a reader busy-waits for the next frame. It spins only if recent frames
// arrived within this limit. A client of small steps sends its next request within a millisecond.
const spinLimit = time.Millisecond

// waitingCallers counts the goroutines of the process that wait for the response to a Call. The
// limit on spinning readers is about the cores of the process, so the count is process-wide.
var waitingCallers atomic.Int32

// A spinPoller busy-waits for data on a connection whose peer answers quickly, so that no thread
// has to be woken when the data arrives.
//
// The simple design blocks in Read. The wake-up then costs 5 µs if the core is busy with something
// else, and 50 to 700 µs on a virtual machine whose idle core went back to the host. With
// busy-waiting, the median of a callable fell from 342 to 209 µs, and that of a step of one hop
// from 1468 to 1261 µs.
//
// A reader spins only if all of this holds:
//
//   - The mean wait for the last few reads was below spinLimit.
//   - At most one caller of the process waits for a response. With eight spinning callers, the p99
//     of the Go client was 12 ms instead of 5.
//   - The connection carries no stream of requests. A stream has a goroutine of its own, which has
//     to be woken anyway. Its client is TensorFlow 2, whose call of a function runs on several
//     threads: with a busy core it took 600 µs instead of 400 on a machine with two, and its
//     server 440 µs of processor time instead of 120.
//   - spin.Until allows it: no goroutine computes, none spins, and no other program wants the core.
//
// Only the holder of the read token uses it.
type spinPoller struct {
	raw  syscall.RawConn              // nil if the connection cannot be polled
	poll func(fd uintptr) (done bool) // pollUntilReadable, allocated once
	// mean time from the start of a read to its data, in ns, weighted to the last four
	meanWait int64
	// whether to run other goroutines before spinning, which wakes a thread; set by readers whose
	// responses may have made goroutines runnable
	yieldFirst bool
	streams    bool // the connection has carried a stream of requests
}

func (p *spinPoller) init(c net.Conn) {
	p.meanWait = 2 * int64(spinLimit) // no spinning before the peer proved to be quick
	p.poll = p.pollUntilReadable
	if s, ok := c.(interface{ NetConn() net.Conn }); ok { // TLS
		c = s.NetConn()
	}
	if s, ok := c.(syscall.Conn); ok && canPoll {
		p.raw, _ = s.SyscallConn() // an error leaves raw nil
	}
}

// spin returns when data has arrived, or when the reader should block instead.
func (p *spinPoller) spin() {
	if p.raw == nil || !p.shouldSpin() {
		return
	}
	if p.yieldFirst {
		runtime.Gosched()
	}
	_ = p.raw.Read(p.poll) // the following read reports the error
}

// shouldSpin reports whether data is likely to arrive soon and no other caller needs the core.
func (p *spinPoller) shouldSpin() bool {
	return !p.streams && p.meanWait < int64(spinLimit) && waitingCallers.Load() <= 1
}

func (p *spinPoller) pollUntilReadable(fd uintptr) bool {
	spin.Until(spinLimit, parallel.Busy, func() bool { return readable(fd) })
	return true
}

// record adds the wait for one read, in ns, to the mean. Longer waits count as four limits, so that
// one pause does not prevent spinning for long.
func (p *spinPoller) record(wait int64) {
	p.meanWait = (3*p.meanWait + min(wait, 4*int64(spinLimit))) / 4
}
