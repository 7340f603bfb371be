package samehost

import (
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"
	"unsafe"

	"google.golang.org/protobuf/types/known/anypb"
)

const (
	// greeting bounds how long the ends of a channel may take to get to know each other.
	greeting = 5 * time.Second
	// maxChannels bounds the connections of a lender, of which each has a goroutine.
	maxChannels = 1024
	helloSize   = 3 * 8
	ticketSize  = 8
)

// door is where a lender's borrowers come in.
type door struct {
	lender     *Lender
	listener   *net.UnixListener // nil if there is none
	invitation *anypb.Any        // nil if there is no listener
	secret     []byte
	work       sync.WaitGroup

	mu     sync.Mutex
	closed bool                       // guarded by mu
	conns  map[*net.UnixConn]struct{} // guarded by mu
}

// accept serves borrowers until the door is closed.
func (d *door) accept() {
	for {
		conn, err := d.listener.AcceptUnix()
		if err != nil {
			if !errors.Is(err, net.ErrClosed) {
				d.lender.log.Warn("no more borrowers of large tensors are let in", "error", err)
			}
			return
		}
		if !d.enter(conn) {
			conn.Close()
			continue
		}
		d.work.Go(func() {
			defer d.leave(conn)
			if err := d.serve(conn); err != nil {
				d.lender.log.Debug("a channel for large tensors has ended", "error", err)
			}
		})
	}
}

func (d *door) enter(conn *net.UnixConn) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed || len(d.conns) == maxChannels {
		return false
	}
	d.conns[conn] = struct{}{}
	return true
}

func (d *door) leave(conn *net.UnixConn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.conns, conn)
	conn.Close()
}

// serve greets a borrower, hands over what it cannot read and takes tickets back until it leaves.
// What it has not read by then, it may redeem.
func (d *door) serve(conn *net.UnixConn) error {
	if err := conn.SetReadDeadline(time.Now().Add(greeting)); err != nil {
		return err
	}
	if _, err := peerProcess(conn); err != nil {
		return err
	}
	secret := make([]byte, secretSize)
	if _, err := io.ReadFull(conn, secret); err != nil {
		return err
	}
	if subtle.ConstantTimeCompare(secret, d.secret) != 1 {
		return errors.New("a borrower does not know the secret")
	}
	g := &guest{lender: d.lender, channel: number(), pipes: map[*os.File]struct{}{}}
	g.probe.Store(number())
	hello := binary.LittleEndian.AppendUint64(make([]byte, 0, helloSize), g.channel)
	hello = binary.LittleEndian.AppendUint64(hello, address(unsafe.Pointer(&g.probe)))
	hello = binary.LittleEndian.AppendUint64(hello, g.probe.Load())
	d.lender.join(g.channel)
	defer g.leave(conn)
	if _, err := conn.Write(hello); err != nil {
		return err
	}
	if err := conn.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	ticket := make([]byte, ticketSize)
	for {
		pipe, err := receive(conn, ticket)
		switch n := binary.LittleEndian.Uint64(ticket); {
		case err != nil:
			return err
		case pipe != nil && n == slotsTicket:
			d.lender.adopt(g.channel, pipe)
		case pipe != nil:
			g.handOver(n, pipe)
		default:
			d.lender.returned(g.channel, n)
		}
	}
}

func (l *Lender) join(channel uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.channels[channel] = nil
}

// adopt takes the slots of a channel, of which it has one set at most.
func (l *Lender) adopt(channel uint64, file *os.File) {
	defer file.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.channels[channel] != nil {
		return
	}
	s, err := mapSlots(file)
	if err != nil {
		l.log.Debug("tensors are given back over the channel", "error", err)
		return
	}
	l.channels[channel] = s
}

// part ends a channel, of which the borrower has heard already.
func (l *Lender) part(channel uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sweepLocked(l.channels[channel])
	delete(l.channels, channel)
	for ticket, n := range l.loans {
		if n.channel == channel && n.handed {
			n.handed = false
			if n.over {
				l.endLocked(ticket, n)
			}
		}
	}
}

func (d *door) close() {
	if d.listener != nil {
		d.listener.Close()
	}
	d.mu.Lock()
	d.closed = true
	for conn := range d.conns {
		conn.Close()
	}
	d.mu.Unlock()
	d.work.Wait()
}
