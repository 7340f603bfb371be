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
)

const (
	// patience is how long a lender may take to make room for a ticket in its socket.
	patience = 5 * time.Second
)

// channel is what a borrower has with a lender.
type channel struct {
	way
	conn   *net.UnixConn
	number uint64
	offer  *anypb.Any // of this channel
	slots  *slots     // nil if everything is given back over conn
}

// way is how a borrower gets at the elements of tensors.
type way interface {
	// lends reports whether the lender keeps a tensor, by an error, as far as that is known before
	// it is read.
	lends(r *reply) error
	// read copies the elements of a tensor, and makes sure that they were there all the time.
	read(ctx context.Context, dst []byte, r *reply) error
}

// dial follows an invitation and makes sure that there is a way to the lender's memory.
func (b *Borrower) dial(r *reply) (*channel, error) {
	name, ok := strings.CutPrefix(r.socket, socketPrefix)
	if _, err := hex.DecodeString(name); !ok || err != nil || len(r.secret) != secretSize {
		return nil, errMalformed
	}
	ctx, cancel := context.WithTimeout(b.life, greeting)
	defer cancel()
	c, err := new(net.Dialer).DialContext(ctx, "unix", r.socket)
	if err != nil {
		return nil, err
	}
	ch := &channel{conn: c.(*net.UnixConn)} //nolint:forcetypeassert // of the network "unix"
	if err := ch.greet(ctx, r.secret, b); err != nil {
		c.Close()
		return nil, err
	}
	return ch, nil
}

// greet gets to know a lender.
func (c *channel) greet(ctx context.Context, secret []byte, b *Borrower) error {
	if err := c.conn.SetDeadline(time.Now().Add(greeting)); err != nil {
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
	if word, err := readWord(pid, address); err == nil && word == probe && !b.blind {
		c.way = memory(pid)
		if err := c.shareSlots(); err != nil {
			b.log.Debug("tensors are given back over the channel", "error", err)
		}
	} else {
		through := &pipes{c.conn, b.pipes, greeting}
		word, err := through.word(ctx)
		if err != nil {
			return err
		}
		if word != probe {
			return fmt.Errorf("process %d is another one than the lender", pid)
		}
		through.stall = maxStall
		c.way = through
	}
	return c.conn.SetDeadline(time.Time{})
}

// shareSlots makes slots, and sends the lender their memory.
func (c *channel) shareSlots() error {
	s, file, err := newSlots()
	if err != nil {
		return err
	}
	defer file.Close()
	if err := sendPipe(c.conn, ticketBytes(slotsTicket), file); err != nil {
		return err
	}
	c.slots = s
	return nil
}

// watch waits until the lender ends the channel, or ctx ends.
func (c *channel) watch(ctx context.Context) {
	stop := context.AfterFunc(ctx, func() { c.conn.Close() })
	defer stop()
	defer c.conn.Close()
	_, _ = c.conn.Read(make([]byte, 1)) // nothing is ever sent
}

// giveBack tells the lender that a tensor is no longer read. It keeps the tensor otherwise until
// the step ends.
func (c *channel) giveBack(r *reply) {
	if c.slots.giveBack(r.slot, r.ticket) {
		return
	}
	if c.conn.SetWriteDeadline(time.Now().Add(patience)) == nil {
		if _, err := c.conn.Write(ticketBytes(r.ticket)); err == nil {
			return
		}
	}
	c.conn.Close()
}
