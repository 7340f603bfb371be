package transfer

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/anypb"
)

const (
	// chunk is read at a time, between two looks whether anybody still wants it.
	chunk = 16 << 20
	// patience is how long a lender may take to make room for a ticket in its socket.
	patience = 5 * time.Second
)

// channel is a borrower's way to the memory of a lender.
type channel struct {
	conn   *net.UnixConn
	pid    int
	number uint64
	offer  *anypb.Any // of this channel
}

// dial follows an invitation and makes sure that the lender's memory can be read.
func dial(ctx context.Context, r *reply) (*channel, error) {
	name, ok := strings.CutPrefix(r.socket, socketPrefix)
	if _, err := hex.DecodeString(name); !ok || err != nil || len(r.secret) != secretSize {
		return nil, errMalformed
	}
	dialer := net.Dialer{Timeout: greeting}
	c, err := dialer.DialContext(ctx, "unix", r.socket)
	if err != nil {
		return nil, err
	}
	ch := &channel{conn: c.(*net.UnixConn)} //nolint:forcetypeassert // of the network "unix"
	if err := ch.greet(r.secret); err != nil {
		c.Close()
		return nil, err
	}
	return ch, nil
}

func (c *channel) greet(secret []byte) (err error) {
	if err := c.conn.SetDeadline(time.Now().Add(greeting)); err != nil {
		return err
	}
	if c.pid, err = peerProcess(c.conn); err != nil {
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
	word, err := readWord(c.pid, binary.LittleEndian.Uint64(hello[8:]))
	if err != nil {
		return err
	}
	if word != binary.LittleEndian.Uint64(hello[16:]) {
		return fmt.Errorf("process %d is another one than the lender", c.pid)
	}
	return c.conn.SetDeadline(time.Time{})
}

// watch waits until the lender ends the channel, or ctx ends.
func (c *channel) watch(ctx context.Context) {
	stop := context.AfterFunc(ctx, func() { c.conn.Close() })
	defer stop()
	defer c.conn.Close()
	_, _ = c.conn.Read(make([]byte, 1)) // nothing is ever sent
}

var errReturned = errors.New("the tensor is no longer lent")

// lends reports whether the lender keeps a tensor, by an error.
func (c *channel) lends(r *reply) error {
	word, err := readWord(c.pid, r.word)
	if err == nil && word != r.ticket {
		err = errReturned
	}
	return err
}

// read copies the elements of a tensor, and makes sure that they were there all the time.
func (c *channel) read(ctx context.Context, dst []byte, r *reply) error {
	for at := 0; at < len(dst); at += chunk {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := readMemory(c.pid, dst[at:min(at+chunk, len(dst))], r.elements+uint64(at)); err != nil {
			return err
		}
	}
	return c.lends(r)
}

// giveBack tells the lender that a tensor is no longer read. It keeps the tensor otherwise until the step ends.
func (c *channel) giveBack(ticket uint64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], ticket)
	if c.conn.SetWriteDeadline(time.Now().Add(patience)) == nil {
		if _, err := c.conn.Write(b[:]); err == nil {
			return
		}
	}
	c.conn.Close()
}
