package samehost

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"
)

const (
	// pipeSize is how much of a tensor waits in a pipe, as much as everybody may have.
	pipeSize = 1 << 20
	// pipeRead is read at a time, so that the lender adds to one half while the other is read.
	pipeRead = pipeSize / 2
	// maxPipes bounds the pipes of a borrower. The kernel lets the processes of a user have 64 of
	// this size.
	maxPipes = 8
	// maxStall is how long a lender may hand over nothing. All pipes may be its own for so long.
	maxStall = time.Second
	// probeTicket is what a borrower without a ticket asks for: the word of the greeting.
	probeTicket = 0
)

var errChannelEnd = errors.New("the lender has ended the channel")

// pipes are a way to the elements of a lender that the system does not let others read: with the
// ticket, the borrower sends one end of a pipe, and the lender has its pages taken for what the
// pipe holds. Reading them is the only copy.
type pipes struct {
	conn  *net.UnixConn
	open  chan struct{} // has an element for each of the borrower's
	stall time.Duration // how long the lender may hand over nothing
}

// lends implements [way]. Whether a tensor is still lent shows when its first bytes come.
func (p *pipes) lends(*reply) error { return nil }

// read implements [way]. A lender keeps what it hands over until it hears that it was read, or ends
// the channel before.
func (p *pipes) read(ctx context.Context, dst []byte, r *reply) error {
	select {
	case p.open <- struct{}{}:
		defer func() { <-p.open }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := p.receive(ctx, dst, r.ticket); err != nil {
		return err
	}
	return stillOpen(p.conn)
}

// receive fills dst with what the lender hands over for a ticket. A lender that stops to do so
// loses the channel: others wait for the pipe.
func (p *pipes) receive(ctx context.Context, dst []byte, ticket uint64) error {
	in, out, err := newPipe()
	if err != nil {
		return err
	}
	defer in.Close()
	stop := context.AfterFunc(ctx, func() { in.Close() })
	defer stop()
	if err = p.conn.SetWriteDeadline(time.Now().Add(p.stall)); err == nil {
		err = sendPipe(p.conn, ticketBytes(ticket), out)
	}
	out.Close()
	if err != nil {
		return err
	}
	for len(dst) > 0 {
		if err := in.SetReadDeadline(time.Now().Add(p.stall)); err != nil {
			return err
		}
		n, err := in.Read(dst[:min(len(dst), pipeRead)])
		if errors.Is(err, os.ErrDeadlineExceeded) {
			p.conn.Close()
		}
		if err != nil {
			return fmt.Errorf("reading what is handed over: %w", err)
		}
		dst = dst[n:]
	}
	return nil
}

// word returns the word of the greeting.
func (p *pipes) word(ctx context.Context) (uint64, error) {
	var b [8]byte
	err := p.receive(ctx, b[:], probeTicket)
	return binary.NativeEndian.Uint64(b[:]), err
}

func ticketBytes(ticket uint64) []byte {
	return binary.LittleEndian.AppendUint64(make([]byte, 0, ticketSize), ticket)
}

// handOver lets a borrower read memory through its pipe. Closing the pipe ends it.
func handOver(pipe *os.File, mem []byte) error {
	raw, err := pipe.SyscallConn()
	if err != nil {
		return err
	}
	for len(mem) > 0 {
		n, err := pour(raw, mem)
		if err != nil {
			return err
		}
		if n <= 0 {
			return io.ErrShortWrite
		}
		mem = mem[n:]
	}
	return nil
}
