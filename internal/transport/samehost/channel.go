package samehost

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/anypb"

	"github.com/weft-ml/weft/internal/sys/failpoint"
)

// writeTimeout bounds a write to the socket of a lender.
const writeTimeout = 5 * time.Second

// channel is the borrower's end of the connection to a lender.
type channel struct {
	elementReader
	conn   *net.UnixConn
	number uint64     // chosen by the lender
	offer  *anypb.Any // names this channel
	slots  *slots     // nil if all leases are returned over conn
}

// elementReader reads the elements of leased tensors.
type elementReader interface {
	// checkLease returns an error if the tensor is known to be no longer leased, before it is read.
	checkLease(r *reply) error
	// read copies the elements of a tensor to dst, and verifies that the lease lasted until the
	// end.
	read(ctx context.Context, dst []byte, r *reply) error
}

// dial opens the channel of a handshake.
func (b *Borrower) dial(r *reply) (*channel, error) {
	if err := failpoint.Hit("samehost/dial"); err != nil {
		return nil, err
	}
	name, ok := strings.CutPrefix(r.socket, socketPrefix)
	if _, err := hex.DecodeString(name); !ok || err != nil || len(r.secret) != secretSize {
		return nil, errMalformed
	}
	ctx, cancel := context.WithTimeout(b.ctx, handshakeTimeout)
	defer cancel()
	c, err := new(net.Dialer).DialContext(ctx, "unix", r.socket)
	if err != nil {
		return nil, err
	}
	ch := &channel{conn: c.(*net.UnixConn)} //nolint:forcetypeassert // the network is "unix"
	if err := ch.handshake(ctx, r.secret, b); err != nil {
		c.Close()
		return nil, err
	}
	return ch, nil
}

// handshake identifies the lender and finds out how its memory can be read.
func (c *channel) handshake(ctx context.Context, secret []byte, b *Borrower) error {
	if err := failpoint.Hit("samehost/borrower-handshake"); err != nil {
		return err
	}
	if err := c.conn.SetDeadline(time.Now().Add(handshakeTimeout)); err != nil {
		return err
	}
	pid, err := peerProcess(c.conn)
	if err != nil {
		return err
	}
	if _, err := c.conn.Write(secret); err != nil {
		return err
	}
	hello := make([]byte, helloSize)
	if _, err := io.ReadFull(c.conn, hello); err != nil {
		return err
	}
	c.number = binary.LittleEndian.Uint64(hello)
	c.offer = (&offer{channel: c.number}).encode()
	address, probe := binary.LittleEndian.Uint64(hello[8:]), binary.LittleEndian.Uint64(hello[16:])
	if word, err := readWord(pid, address); err == nil && word == probe && !b.noMemoryAccess {
		c.elementReader = memoryReader(pid)
		if err := c.shareSlots(); err != nil {
			b.log.Debug("cannot share slots; leases are returned over the channel", "error", err)
		}
	} else {
		reader := &pipeReader{c.conn, b.pipes, handshakeTimeout}
		word, err := reader.fetchProbe(ctx)
		if err != nil {
			return err
		}
		if word != probe {
			return fmt.Errorf("process %d is not the lender", pid)
		}
		reader.stallTimeout = maxStall
		c.elementReader = reader
	}
	return c.conn.SetDeadline(time.Time{})
}

// shareSlots creates slots and sends their memory to the lender.
func (c *channel) shareSlots() error {
	if err := failpoint.Hit("samehost/share-slots"); err != nil {
		return err
	}
	s, file, err := newSlots()
	if err != nil {
		return err
	}
	defer file.Close()
	if err := sendFile(c.conn, leaseIDBytes(slotsLeaseID), file); err != nil {
		return err
	}
	c.slots = s
	return nil
}

// waitEnd returns when the lender closes the channel, or ctx ends.
func (c *channel) waitEnd(ctx context.Context) {
	stop := context.AfterFunc(ctx, func() { c.conn.Close() })
	defer stop()
	defer c.conn.Close()
	_, _ = c.conn.Read(make([]byte, 1)) // the lender sends nothing after the handshake
}

// release returns a lease. If that fails, it closes the channel, and the lease ends with its step.
func (c *channel) release(r *reply) {
	if c.slots.release(r.slot, r.leaseID) {
		return
	}
	if c.conn.SetWriteDeadline(time.Now().Add(writeTimeout)) == nil {
		if _, err := c.conn.Write(leaseIDBytes(r.leaseID)); err == nil {
			return
		}
	}
	c.conn.Close()
}
