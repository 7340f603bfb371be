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

	"github.com/weft-ml/weft/internal/sys/failpoint"
)

const (
	// handshakeTimeout bounds the handshake of a channel.
	handshakeTimeout = 5 * time.Second
	// maxChannels bounds the channels of a lender, because each has a goroutine.
	maxChannels = 1024
	helloSize   = 3 * 8 // channel number, address of the probe word, probe word
	leaseIDSize = 8
)

// channelListener accepts the channels of a lender's borrowers.
type channelListener struct {
	lender      *Lender
	socket      *net.UnixListener // nil if listening has failed
	handshake   *anypb.Any        // reply that announces the socket; nil without socket
	secret      []byte
	connections sync.WaitGroup

	mu     sync.Mutex
	closed bool                       // guarded by mu
	conns  map[*net.UnixConn]struct{} // guarded by mu
}

// accept serves channels until close is called.
func (l *channelListener) accept() {
	for {
		conn, err := l.socket.AcceptUnix()
		if err != nil {
			if !errors.Is(err, net.ErrClosed) {
				l.lender.log.Warn("cannot accept channels for large tensors any longer", "error", err)
			}
			return
		}
		if !l.addConn(conn) {
			conn.Close()
			continue
		}
		l.connections.Go(func() {
			defer l.removeConn(conn)
			if err := l.serve(conn); err != nil {
				l.lender.log.Debug("a channel for large tensors has ended", "error", err)
			}
		})
	}
}

// addConn registers a connection. It reports false after close, or if there are too many.
func (l *channelListener) addConn(conn *net.UnixConn) bool {
	if failpoint.Hit("samehost/accept") != nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || len(l.conns) == maxChannels {
		return false
	}
	l.conns[conn] = struct{}{}
	return true
}

func (l *channelListener) removeConn(conn *net.UnixConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, conn)
	conn.Close()
}

// serve performs the handshake, writes tensors to pipes and takes returned leases, until the
// borrower closes the channel. The borrower may still fetch leases as bytes afterwards.
func (l *channelListener) serve(conn *net.UnixConn) error {
	if err := failpoint.Hit("samehost/lender-handshake"); err != nil {
		return err
	}
	if err := conn.SetReadDeadline(time.Now().Add(handshakeTimeout)); err != nil {
		return err
	}
	if _, err := peerProcess(conn); err != nil {
		return err
	}
	secret := make([]byte, secretSize)
	if _, err := io.ReadFull(conn, secret); err != nil {
		return err
	}
	if subtle.ConstantTimeCompare(secret, l.secret) != 1 {
		return errors.New("the secret of a borrower is wrong")
	}
	ch := &peerChannel{lender: l.lender, channel: randomID(), pipes: map[*os.File]struct{}{}}
	ch.probe.Store(randomID())
	hello := binary.LittleEndian.AppendUint64(make([]byte, 0, helloSize), ch.channel)
	hello = binary.LittleEndian.AppendUint64(hello, addressOf(unsafe.Pointer(&ch.probe)))
	hello = binary.LittleEndian.AppendUint64(hello, ch.probe.Load())
	l.lender.addChannel(ch.channel)
	defer ch.close(conn)
	if _, err := conn.Write(hello); err != nil {
		return err
	}
	if err := conn.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	id := make([]byte, leaseIDSize)
	for {
		pipe, err := receiveMessage(conn, id)
		switch n := binary.LittleEndian.Uint64(id); {
		case err != nil:
			return err
		case pipe != nil && n == slotsLeaseID:
			l.lender.setSlots(ch.channel, pipe)
		case pipe != nil:
			ch.sendTensor(n, pipe)
		default:
			l.lender.release(ch.channel, n)
		}
	}
}

// addChannel registers a channel without slots.
func (l *Lender) addChannel(channel uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.channels[channel] = nil
}

// setSlots maps the slots of a channel. A channel has one set at most.
func (l *Lender) setSlots(channel uint64, file *os.File) {
	defer file.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.channels[channel] != nil {
		return
	}
	s, err := mapSlots(file)
	if err != nil {
		l.log.Debug("cannot map slots; leases are returned over the channel", "error", err)
		return
	}
	l.channels[channel] = s
}

// removeChannel forgets a closed channel. Leases whose step has ended and that were being written
// to a pipe end now.
func (l *Lender) removeChannel(channel uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sweepLocked(l.channels[channel])
	delete(l.channels, channel)
	for id, n := range l.leases {
		if n.channel == channel && n.inPipe {
			n.inPipe = false
			if n.stepEnded {
				l.endLeaseLocked(id, n)
			}
		}
	}
}

// close closes the socket and all channels, and waits for their goroutines.
func (l *channelListener) close() {
	if l.socket != nil {
		l.socket.Close()
	}
	l.mu.Lock()
	l.closed = true
	for conn := range l.conns {
		conn.Close()
	}
	l.mu.Unlock()
	l.connections.Wait()
}
