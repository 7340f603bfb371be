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
	// pipeSize is the capacity of a pipe, in bytes: the most that the kernel allows by default.
	pipeSize = 1 << 20
	// pipeRead is the number of bytes per read. It is half of a pipe, so that the lender can fill
	// the other half meanwhile.
	pipeRead = pipeSize / 2
	// maxPipes bounds the pipes of a borrower. The kernel allows 64 of this size for each user.
	maxPipes = 8
	// minPipeRate is the least rate at which a lender may write a tensor, in bytes per second.
	minPipeRate = 16 << 20
	// maxStall is how long a lender may write nothing. One lender may use all pipes for that long.
	maxStall = time.Second
	// probeLeaseID requests the probe word during the handshake.
	probeLeaseID = 0
)

var errChannelEnd = errors.New("the lender has closed the channel")

// pipeReader reads the elements of a lender whose memory the system protects. The borrower sends
// the lease ID with the writing end of a pipe, and the lender maps the pages of the tensor into the
// pipe. Reading the pipe is the only copy.
type pipeReader struct {
	conn         *net.UnixConn
	semaphore    chan struct{} // one element for each open pipe of the borrower
	stallTimeout time.Duration // longest time without data
}

// checkLease implements [elementReader]. The first bytes show whether the tensor is still leased.
func (p *pipeReader) checkLease(*reply) error { return nil }

// read implements [elementReader]. The lender keeps a tensor that it writes to a pipe until the
// lease is returned, or closes the channel first; so the tensor was leased all the time if the
// channel is open.
func (p *pipeReader) read(ctx context.Context, dst []byte, r *reply) error {
	select {
	case p.semaphore <- struct{}{}:
		defer func() { <-p.semaphore }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := p.fetch(ctx, dst, r.leaseID); err != nil {
		return err
	}
	return checkOpen(p.conn)
}

// fetch fills dst with the data that the lender writes for a lease ID. A lender that stalls, or is
// slower than minPipeRate, loses the channel, because other reads wait for the pipe.
func (p *pipeReader) fetch(ctx context.Context, dst []byte, id uint64) error {
	in, out, err := newPipe()
	if err != nil {
		return err
	}
	defer in.Close()
	stop := context.AfterFunc(ctx, func() { in.Close() })
	defer stop()
	if err = p.conn.SetWriteDeadline(time.Now().Add(p.stallTimeout)); err == nil {
		err = sendFile(p.conn, leaseIDBytes(id), out)
	}
	out.Close()
	if err != nil {
		return err
	}
	end := time.Now().Add(p.stallTimeout + time.Duration(len(dst)/minPipeRate)*time.Second)
	for len(dst) > 0 {
		next := time.Now().Add(p.stallTimeout)
		if next.After(end) {
			next = end
		}
		if err := in.SetReadDeadline(next); err != nil {
			return err
		}
		n, err := in.Read(dst[:min(len(dst), pipeRead)])
		if errors.Is(err, os.ErrDeadlineExceeded) {
			p.conn.Close()
		}
		if err != nil {
			return fmt.Errorf("reading a leased tensor from a pipe: %w", err)
		}
		dst = dst[n:]
	}
	return nil
}

// fetchProbe returns the probe word of the handshake.
func (p *pipeReader) fetchProbe(ctx context.Context) (uint64, error) {
	var b [8]byte
	err := p.fetch(ctx, b[:], probeLeaseID)
	return binary.NativeEndian.Uint64(b[:]), err
}

// leaseIDBytes encodes a lease ID as a message.
func leaseIDBytes(id uint64) []byte {
	return binary.LittleEndian.AppendUint64(make([]byte, 0, leaseIDSize), id)
}

// writePipe writes memory to a pipe without copying it. Closing the pipe ends it.
func writePipe(pipe *os.File, mem []byte) error {
	raw, err := pipe.SyscallConn()
	if err != nil {
		return err
	}
	for len(mem) > 0 {
		n, err := vmsplice(raw, mem)
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
