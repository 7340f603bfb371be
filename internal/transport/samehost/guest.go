package samehost

import (
	"net"
	"os"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/weft-ml/weft/tensor"
)

// guest is a borrower as its lender knows it.
type guest struct {
	lender  *Lender
	channel uint64
	// the word that the borrower reads first; it stays in its place as long as the guest
	probe  atomic.Uint64
	probed bool // the borrower has asked for it
	work   sync.WaitGroup

	mu    sync.Mutex
	gone  bool                  // guarded by mu
	pipes map[*os.File]struct{} // guarded by mu
}

// handOver lets the borrower read a tensor through its pipe, which it finds at its end if the
// tensor is not lent.
func (g *guest) handOver(ticket uint64, pipe *os.File) {
	if ticket == probeTicket && !g.probed {
		g.probed = true
		g.pour(pipe, unsafe.Slice((*byte)(unsafe.Pointer(&g.probe)), unsafe.Sizeof(g.probe)), func() {})
		return
	}
	t, ok := g.lender.hand(g.channel, ticket)
	if !ok {
		pipe.Close()
		return
	}
	g.pour(pipe, t.Bytes(), t.Release)
}

// pour hands memory over on a goroutine of its own, of which there is one for each loan at most,
// and calls done when it does not touch the memory any more.
func (g *guest) pour(pipe *os.File, mem []byte, done func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.gone {
		pipe.Close()
		done()
		return
	}
	g.pipes[pipe] = struct{}{}
	g.work.Go(func() {
		defer done()
		if err := handOver(pipe, mem); err != nil {
			g.lender.log.Debug("a tensor could not be handed over", "error", err)
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.pipes, pipe)
		pipe.Close()
	})
}

// leave ends the channel. The borrower hears of it before anything that it may be reading is
// released.
func (g *guest) leave(conn *net.UnixConn) {
	conn.Close()
	g.mu.Lock()
	g.gone = true
	for pipe := range g.pipes {
		pipe.Close()
	}
	g.mu.Unlock()
	g.work.Wait()
	g.probe.Store(0)
	g.lender.part(g.channel)
}

// hand returns a loan of a channel, to be handed over. It is kept until the borrower has it, or
// leaves, even if the step is over before.
func (l *Lender) hand(channel, ticket uint64) (t tensor.Tensor, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.loans[ticket]
	if n == nil || n.channel != channel || n.handed {
		return t, false
	}
	n.handed = true
	return n.tensor.Retain(), true
}
