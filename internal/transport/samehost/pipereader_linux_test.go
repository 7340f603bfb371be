package samehost

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// startTransfer returns a pair whose lender is writing a tensor to a pipe. The tensor is larger
// than the pipe, and nothing was read yet.
func startTransfer(t *testing.T) (p *pair, in *os.File, id uint64, x tensor.Tensor) {
	t.Helper()
	x = random(tensor.Uint8, tensor.Shape{5 * pipeSize / 2})
	p = newPipePair(t, responses(x))
	ch := p.open()
	resp := p.produce()
	req := &message.RecvTensorRequest{StepID: 7, Key: "k", Transport: ch.offer}
	if !p.lender.Lend(req, resp) {
		t.Fatal("no tensor was leased")
	}
	r, err := decodeReply(resp.Transport)
	if err != nil {
		t.Fatal(err)
	}
	in, out, err := newPipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close() })
	defer out.Close()
	if err := sendFile(ch.conn, leaseIDBytes(r.leaseID), out); err != nil {
		t.Fatal(err)
	}
	p.until("the transfer has started", func() bool {
		p.lender.mu.Lock()
		defer p.lender.mu.Unlock()
		return p.lender.leases[r.leaseID].inPipe
	})
	return p, in, r.leaseID, x
}

// A tensor is kept until its transfer has ended, even if its step ends earlier.
func TestStepEndsDuringTransfer(t *testing.T) {
	p, in, id, x := startTransfer(t)
	p.lender.EndStep(7)
	if p.lender.LeasedBytes() == 0 {
		t.Error("the tensor was released during its transfer")
	}
	got := make([]byte, len(x.Bytes()))
	if _, err := io.ReadFull(in, got); err != nil || !bytes.Equal(got, x.Bytes()) {
		t.Errorf("the received tensor differs: %v", err)
	}
	p.borrower.peer("peer").channel.Load().release(&reply{leaseID: id})
	p.until("all leases have ended", func() bool { return p.lender.LeasedBytes() == 0 })
}

// A borrower that closes its channel during a transfer ends the transfer, and the lease remains
// until its step ends.
func TestBorrowerClosesDuringTransfer(t *testing.T) {
	p, in, _, _ := startTransfer(t)
	p.borrower.Close()
	p.until("its channel has ended", func() bool { _, n := p.counts(); return n == 0 })
	if n, err := io.Copy(io.Discard, in); n > 2*pipeSize || err != nil {
		t.Errorf("received %d bytes, %v", n, err)
	}
	if p.lender.LeasedBytes() == 0 {
		t.Error("the lease has ended, so it cannot be fetched")
	}
	p.lender.EndStep(7)
	if n := p.lender.LeasedBytes(); n != 0 {
		t.Errorf("%d bytes are still leased", n)
	}
}

// The leases of a step that has ended do not survive the channel.
func TestBorrowerClosesAfterStep(t *testing.T) {
	p, _, _, _ := startTransfer(t)
	p.lender.EndStep(7)
	p.borrower.Close()
	p.until("all leases have ended", func() bool { return p.lender.LeasedBytes() == 0 })
}

// A borrower notices the end of a channel before it can take other data for the tensor.
func TestLenderClosesDuringTransfer(t *testing.T) {
	p, in, _, _ := startTransfer(t)
	ch := p.borrower.peer("peer").channel.Load()
	p.lender.Close()
	if err := checkOpen(ch.conn); err == nil {
		t.Error("the channel is open after Close")
	}
	if n, err := io.Copy(io.Discard, in); n > 2*pipeSize || err != nil {
		t.Errorf("received %d bytes, %v", n, err)
	}
	if _, err := p.borrower.borrow(t.Context(), ch, &reply{leaseID: 5, dtype: tensor.Int8, shape: tensor.Shape{minLeased}}); err == nil {
		t.Error("a tensor was borrowed from a closed lender")
	}
	if n := p.lender.LeasedBytes(); n != 0 {
		t.Errorf("%d bytes are still leased", n)
	}
}

// A lease of another channel, a lease in transfer and a file that is not a pipe get no data.
func TestRefusedTransfers(t *testing.T) {
	p, _, id, _ := startTransfer(t)
	ch := p.borrower.peer("peer").channel.Load()
	reader := ch.elementReader.(*pipeReader) //nolint:forcetypeassert // a pair without memory access
	for what, id := range map[string]uint64{"a lease in transfer": id, "an unknown lease": 12345, "the second probe": probeLeaseID} {
		if err := reader.fetch(t.Context(), make([]byte, 8), id); err == nil {
			t.Errorf("%s is transferred", what)
		}
	}
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	p.tamper = func(resp *message.RecvTensorResponse) {
		r, err := decodeReply(resp.Transport)
		if err != nil {
			t.Fatal(err)
		}
		if err := sendFile(ch.conn, leaseIDBytes(r.leaseID), file); err != nil {
			t.Fatal(err)
		}
	}
	if resp, err := p.recv(t.Context()); err != nil || p.lastOffer().fetch == 0 {
		t.Errorf("%v, %v", resp, err)
	}
	if at, err := file.Seek(0, io.SeekEnd); at != 0 || err != nil {
		t.Errorf("%d bytes were written to a file, %v", at, err)
	}
	if _, err := ch.conn.Write([]byte{1, 2, 3}); err != nil { // shorter than a lease ID
		t.Fatal(err)
	}
	p.until("the channel is closed", func() bool { _, n := p.counts(); return n == 0 })
}

// The borrower refuses a lender that writes a wrong probe word, or none.
func TestImpostorWithPipe(t *testing.T) {
	for _, word := range [][]byte{make([]byte, 8), {1}, nil} {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socketPrefix + "00112244", Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		var serving sync.WaitGroup
		serving.Go(func() {
			conn, err := l.AcceptUnix()
			if err != nil {
				return
			}
			defer conn.Close()
			if _, err := io.ReadFull(conn, make([]byte, secretSize)); err != nil {
				return
			}
			hello := make([]byte, helloSize)
			binary.LittleEndian.PutUint64(hello[16:], 99)
			_, _ = conn.Write(hello)
			pipe, err := receiveMessage(conn, make([]byte, leaseIDSize))
			if err != nil || pipe == nil {
				t.Errorf("received %v, %v", pipe, err)
				return
			}
			_, _ = pipe.Write(word)
			pipe.Close()
		})
		p := newPipePair(t, nil)
		if _, err := p.borrower.dial(&reply{socket: l.Addr().String(), secret: make([]byte, secretSize)}); err == nil {
			t.Errorf("the borrower accepts the probe word %v", word)
		}
		l.Close()
		serving.Wait()
	}
}

// A step may have more concurrent transfers than pipes are allowed.
func TestManyPipes(t *testing.T) {
	const n = 4 * maxPipes
	p := newPipePair(t, responses(random(tensor.Uint8, tensor.Shape{minLeased})))
	ch := p.open()
	ctx, cancel := context.WithCancel(t.Context())
	var open sync.WaitGroup
	for i := range n {
		x := random(tensor.Uint8, tensor.Shape{int64(minLeased + i*100_000)})
		resp := &message.RecvTensorResponse{Tensor: x.Retain()}
		if !p.lender.Lend(&message.RecvTensorRequest{StepID: 7, Transport: ch.offer}, resp) {
			t.Fatal("no tensor was leased")
		}
		r, err := decodeReply(resp.Transport)
		if err != nil {
			t.Fatal(err)
		}
		open.Go(func() {
			got, err := p.borrower.borrow(ctx, ch, r)
			if err != nil || !bytes.Equal(got.Bytes(), x.Bytes()) {
				t.Errorf("received tensor %d differs: %v", i, err)
			}
		})
	}
	open.Wait()
	p.until("all leases have ended", func() bool { return p.lender.LeasedBytes() == 0 })
	cancel()
	r := &reply{leaseID: 1, dtype: tensor.Int8, shape: tensor.Shape{minLeased}}
	if _, err := p.borrower.borrow(ctx, ch, r); status.CodeOf(status.FromContext(ctx, "")) != status.Cancelled || err == nil {
		t.Errorf("got %v", err)
	}
}

// A stalled lender does not keep pipes from other lenders. Its leases are fetched over the main
// channel.
func TestStalledLenderLosesItsPipes(t *testing.T) {
	x := random(tensor.Uint8, tensor.Shape{minLeased})
	p := newPipePair(t, responses(x))
	ch := p.open()
	// the socket accepts no connection
	deaf, err := net.ListenUnix("unix", &net.UnixAddr{Name: socketPrefix + "00112255", Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer deaf.Close()
	var reading sync.WaitGroup
	for range 2 * maxPipes {
		conn := deafConn(t, deaf)
		stalled := &pipeReader{conn, p.borrower.pipes, time.Millisecond}
		reading.Go(func() {
			if err := stalled.read(t.Context(), make([]byte, minLeased), &reply{leaseID: 1}); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("reading from a stalled lender: %v", err)
			}
			if _, err := conn.Write([]byte{1}); !errors.Is(err, net.ErrClosed) {
				t.Errorf("the channel stays open: %v", err)
			}
		})
	}
	reading.Wait() // no read waits for a pipe of a stalled lender
	if n := len(p.borrower.pipes); n != 0 {
		t.Fatalf("%d pipes are still open", n)
	}

	ch.elementReader = &pipeReader{deafConn(t, deaf), p.borrower.pipes, time.Millisecond}
	resp, err := p.recv(t.Context())
	if err != nil || !bytes.Equal(resp.Tensor.Bytes(), x.Bytes()) || p.lastOffer().fetch == 0 {
		t.Errorf("%v, %+v", err, p.lastOffer())
	}
}

// deafConn connects to a socket that accepts no connection.
func deafConn(t *testing.T, l *net.UnixListener) *net.UnixConn {
	t.Helper()
	conn, err := net.DialUnix("unix", nil, l.Addr().(*net.UnixAddr)) //nolint:forcetypeassert // a Unix socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// A channel works after its last deadlines have passed.
func TestPipesAfterIdleTime(t *testing.T) {
	x := random(tensor.Uint8, tensor.Shape{minLeased})
	p := newPipePair(t, responses(x))
	ch := p.open()
	// the deadline of the last message has passed
	if err := ch.conn.SetWriteDeadline(time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	resp, err := p.recv(t.Context())
	if err != nil || !bytes.Equal(resp.Tensor.Bytes(), x.Bytes()) || p.lastOffer().fetch != 0 {
		t.Errorf("%v, %+v", err, p.lastOffer())
	}
}

// A lender that writes a few bytes now and then does not keep a pipe of the borrower.
func TestSlowLender(t *testing.T) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]*net.UnixConn
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "socket")
		c, err := net.FileConn(f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		ends[i] = c.(*net.UnixConn) //nolint:forcetypeassert // of a Unix socket
	}
	var lender sync.WaitGroup
	lender.Go(func() {
		pipe, err := receiveMessage(ends[1], make([]byte, leaseIDSize))
		if err != nil {
			t.Error(err)
			return
		}
		defer pipe.Close()
		for range 1000 {
			if _, err := pipe.Write([]byte{1}); err != nil {
				return
			}
			time.Sleep(5 * time.Millisecond) //nolint:forbidigo // the pace of a slow lender
		}
	})
	reader := &pipeReader{ends[0], make(chan struct{}, 1), 50 * time.Millisecond}
	if err := reader.fetch(t.Context(), make([]byte, 1000), 5); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	lender.Wait()
}
