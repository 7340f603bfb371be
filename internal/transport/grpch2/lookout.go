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

// lookFor is how long who reads a connection looks for what comes next before going to sleep, and
// how soon it must have come of late for that. It is what a client of small steps takes from one to
// the next.
const lookFor = time.Millisecond

// callers counts the goroutines of the process that wait for calls. Where there are several, each
// connection's reader had better sleep: the thread that looks would be in the way of the others.
var callers atomic.Int32

// lookout waits for a connection whose peer is quick: by looking, so that no thread has to be woken
// when something comes.
type lookout struct {
	raw  syscall.RawConn // nil if the connection cannot be looked at
	look func(fd uintptr) (done bool)
	wait int64 // how long it took of late until something came, in nanoseconds
	// polite lets goroutines run first that who reads may have woken. It wakes a thread.
	polite bool
}

func (l *lookout) init(c net.Conn) {
	l.wait = 2 * int64(lookFor)
	l.look = l.watch
	if s, ok := c.(interface{ NetConn() net.Conn }); ok { // TLS
		c = s.NetConn()
	}
	if s, ok := c.(syscall.Conn); ok && canLook {
		l.raw, _ = s.SyscallConn() // without it, nobody looks
	}
}

// await returns when there is something to be read, or it is time to sleep until there is.
func (l *lookout) await() {
	if l.raw == nil || !l.soon() {
		return
	}
	if l.polite {
		runtime.Gosched()
	}
	_ = l.raw.Read(l.look) // reading says what is wrong
}

// soon reports whether looking is worth the while.
func (l *lookout) soon() bool { return l.wait < int64(lookFor) && callers.Load() <= 1 }

func (l *lookout) watch(fd uintptr) bool {
	spin.Until(lookFor, parallel.Busy, func() bool { return arrived(fd) })
	return true
}

// came takes note of how long it took until something came.
func (l *lookout) came(wait int64) {
	l.wait = (3*l.wait + min(wait, 4*int64(lookFor))) / 4
}
