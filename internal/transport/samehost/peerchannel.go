package samehost

import (
	"net"
	"os"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/weft-ml/weft/tensor"
)

// peerChannel is the lender's end of a channel to a borrower.
type peerChannel struct {
	lender  *Lender
	channel uint64
	// word that the borrower reads during the handshake; its address does not change
	probe     atomic.Uint64
	probeSent bool           // probe was written to a pipe
	transfers sync.WaitGroup // goroutines that write to pipes

	mu     sync.Mutex
	closed bool                  // guarded by mu
	pipes  map[*os.File]struct{} // pipes being written; guarded by mu
}

// sendTensor writes a leased tensor to a pipe. If the tensor is not leased to this channel, it
// closes the pipe.
func (c *peerChannel) sendTensor(id uint64, pipe *os.File) {
	if id == probeLeaseID && !c.probeSent {
		c.probeSent = true
		c.startTransfer(pipe, unsafe.Slice((*byte)(unsafe.Pointer(&c.probe)), unsafe.Sizeof(c.probe)), func() {})
		return
	}
	t, ok := c.lender.leaseForPipe(c.channel, id)
	if !ok {
		pipe.Close()
		return
	}
	c.startTransfer(pipe, t.Bytes(), t.Release)
}

// startTransfer writes memory to a pipe on a new goroutine, at most one per lease, and calls done
// when the memory is no longer used.
func (c *peerChannel) startTransfer(pipe *os.File, mem []byte, done func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		pipe.Close()
		done()
		return
	}
	c.pipes[pipe] = struct{}{}
	c.transfers.Go(func() {
		defer done()
		if err := writePipe(pipe, mem); err != nil {
			c.lender.log.Debug("cannot write a tensor to a pipe", "error", err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.pipes, pipe)
		pipe.Close()
	})
}

// close ends the channel. It closes the connection first, so that the borrower knows of the end
// before anything that it may be reading is released.
func (c *peerChannel) close(conn *net.UnixConn) {
	conn.Close()
	c.mu.Lock()
	c.closed = true
	for pipe := range c.pipes {
		pipe.Close()
	}
	c.mu.Unlock()
	c.transfers.Wait()
	c.probe.Store(0)
	c.lender.removeChannel(c.channel)
}

// leaseForPipe returns the tensor of a lease that is to be written to a pipe. The lease lasts until
// the borrower returns it or closes the channel, even if the step ends earlier.
func (l *Lender) leaseForPipe(channel, id uint64) (t tensor.Tensor, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	lease := l.leases[id]
	if lease == nil || lease.channel != channel || lease.inPipe {
		return t, false
	}
	lease.inPipe = true
	return lease.tensor.Retain(), true
}
