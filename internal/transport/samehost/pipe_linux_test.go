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

	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// handed returns a pair and what its lender hands over: a tensor of which more than a pipe holds
// has not been read.
func handed(t *testing.T) (p *pair, in *os.File, ticket uint64, x tensor.Tensor) {
	t.Helper()
	x = random(tensor.Uint8, tensor.Shape{5 * pipeSize / 2})
	p = newBlindPair(t, responses(x))
	ch := p.open()
	resp := p.produce()
	req := &message.RecvTensorRequest{StepID: 7, Key: "k", Transport: ch.offer}
	if !p.lender.Lend(req, resp) {
		t.Fatal("nothing was lent")
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
	if err := sendPipe(ch.conn, ticketBytes(r.ticket), out); err != nil {
		t.Fatal(err)
	}
	p.until("it is handed over", func() bool {
		p.lender.mu.Lock()
		defer p.lender.mu.Unlock()
		return p.lender.loans[r.ticket].handed
	})
	return p, in, r.ticket, x
}

// What is handed over is kept until the borrower has it, even if its step ends before.
func TestStepEndsWhileHandedOver(t *testing.T) {
	p, in, ticket, x := handed(t)
	p.lender.EndStep(7)
	if p.lender.LeasedBytes() == 0 {
		t.Error("it was released")
	}
	got := make([]byte, len(x.Bytes()))
	if _, err := io.ReadFull(in, got); err != nil || !bytes.Equal(got, x.Bytes()) {
		t.Errorf("the tensor has changed on its way: %v", err)
	}
	p.borrower.peer("there").channel.Load().giveBack(&reply{ticket: ticket})
	p.until("nothing is lent any more", func() bool { return p.lender.LeasedBytes() == 0 })
}

// A borrower that goes away while a tensor is handed over keeps nobody busy, and nothing.
func TestBorrowerLeavesWhileHandedOver(t *testing.T) {
	p, in, _, _ := handed(t)
	p.borrower.Close()
	p.until("its channel has ended", func() bool { _, n := p.lendings(); return n == 0 })
	if n, err := io.Copy(io.Discard, in); n > 2*pipeSize || err != nil {
		t.Errorf("%d bytes have come, %v", n, err)
	}
	if p.lender.LeasedBytes() == 0 {
		t.Error("it cannot be redeemed any more")
	}
	p.lender.EndStep(7)
	if n := p.lender.LeasedBytes(); n != 0 {
		t.Errorf("%d bytes are still lent", n)
	}
}

// A step that is over when a borrower goes away leaves nothing.
func TestBorrowerLeavesAfterStep(t *testing.T) {
	p, _, _, _ := handed(t)
	p.lender.EndStep(7)
	p.borrower.Close()
	p.until("nothing is lent any more", func() bool { return p.lender.LeasedBytes() == 0 })
}

// A borrower hears of the end of a channel before it can take something else for the tensor.
func TestLenderLeavesWhileHandedOver(t *testing.T) {
	p, in, _, _ := handed(t)
	ch := p.borrower.peer("there").channel.Load()
	p.lender.Close()
	if err := stillOpen(ch.conn); err == nil {
		t.Error("the channel is still there")
	}
	if n, err := io.Copy(io.Discard, in); n > 2*pipeSize || err != nil {
		t.Errorf("%d bytes have come, %v", n, err)
	}
	if _, err := p.borrower.borrow(t.Context(), ch, &reply{ticket: 5, dtype: tensor.Int8, shape: tensor.Shape{minLent}}); err == nil {
		t.Error("something was borrowed from nobody")
	}
	if n := p.lender.LeasedBytes(); n != 0 {
		t.Errorf("%d bytes are still lent", n)
	}
}

// Nobody reads what was not lent to its channel, or has been handed over already, or through what
// is no pipe.
func TestNotHandedOver(t *testing.T) {
	p, _, ticket, _ := handed(t)
	ch := p.borrower.peer("there").channel.Load()
	through := ch.way.(*pipes) //nolint:forcetypeassert // of a blind pair
	for what, ticket := range map[string]uint64{"again": ticket, "nothing": 12345, "the probe, again": probeTicket} {
		if err := through.receive(t.Context(), make([]byte, 8), ticket); err == nil {
			t.Errorf("%s is handed over", what)
		}
	}
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	p.meddle = func(resp *message.RecvTensorResponse) {
		r, err := decodeReply(resp.Transport)
		if err != nil {
			t.Fatal(err)
		}
		if err := sendPipe(ch.conn, ticketBytes(r.ticket), file); err != nil {
			t.Fatal(err)
		}
	}
	if resp, err := p.recv(t.Context()); err != nil || p.lastOffer().redeem == 0 {
		t.Errorf("%v, %v", resp, err)
	}
	if at, err := file.Seek(0, io.SeekEnd); at != 0 || err != nil {
		t.Errorf("%d bytes were written to a file, %v", at, err)
	}
	if _, err := ch.conn.Write([]byte{1, 2, 3}); err != nil { // which is no ticket
		t.Fatal(err)
	}
	p.until("the channel has ended", func() bool { _, n := p.lendings(); return n == 0 })
}

// A lender that hands over something else than it greeted with, or nothing, gets no borrower.
func TestImpostorHandsOver(t *testing.T) {
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
			pipe, err := receive(conn, make([]byte, ticketSize))
			if err != nil || pipe == nil {
				t.Errorf("there came %v, %v", pipe, err)
				return
			}
			_, _ = pipe.Write(word)
			pipe.Close()
		})
		p := newBlindPair(t, nil)
		if _, err := p.borrower.dial(&reply{socket: l.Addr().String(), secret: make([]byte, secretSize)}); err == nil {
			t.Errorf("%v has a borrower", word)
		}
		l.Close()
		serving.Wait()
	}
}

// Tensors of one step come at the same time, more than there may be pipes.
func TestManyPipes(t *testing.T) {
	const n = 4 * maxPipes
	p := newBlindPair(t, responses(random(tensor.Uint8, tensor.Shape{minLent})))
	ch := p.open()
	ctx, cancel := context.WithCancel(t.Context())
	var open sync.WaitGroup
	for i := range n {
		x := random(tensor.Uint8, tensor.Shape{int64(minLent + i*100_000)})
		resp := &message.RecvTensorResponse{Tensor: x.Retain()}
		if !p.lender.Lend(&message.RecvTensorRequest{StepID: 7, Transport: ch.offer}, resp) {
			t.Fatal("nothing was lent")
		}
		r, err := decodeReply(resp.Transport)
		if err != nil {
			t.Fatal(err)
		}
		open.Go(func() {
			got, err := p.borrower.borrow(ctx, ch, r)
			if err != nil || !bytes.Equal(got.Bytes(), x.Bytes()) {
				t.Errorf("tensor %d has changed on its way: %v", i, err)
			}
		})
	}
	open.Wait()
	p.until("nothing is lent any more", func() bool { return p.lender.LeasedBytes() == 0 })
	cancel()
	r := &reply{ticket: 1, dtype: tensor.Int8, shape: tensor.Shape{minLent}}
	if _, err := p.borrower.borrow(ctx, ch, r); status.CodeOf(status.FromContext(ctx, "")) != status.Cancelled || err == nil {
		t.Errorf("got %v", err)
	}
}

// A lender that stops handing over does not keep the pipes from other lenders: what it lends comes
// over the main channel.
func TestStalledLenderLosesItsPipes(t *testing.T) {
	x := random(tensor.Uint8, tensor.Shape{minLent})
	p := newBlindPair(t, responses(x))
	ch := p.open()
	// nobody accepts
	deaf, err := net.ListenUnix("unix", &net.UnixAddr{Name: socketPrefix + "00112255", Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer deaf.Close()
	var reading sync.WaitGroup
	for range 2 * maxPipes {
		conn := deafConn(t, deaf)
		stalled := &pipes{conn, p.borrower.pipes, time.Millisecond}
		reading.Go(func() {
			if err := stalled.read(t.Context(), make([]byte, minLent), &reply{ticket: 1}); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("reading what never comes: %v", err)
			}
			if _, err := conn.Write([]byte{1}); !errors.Is(err, net.ErrClosed) {
				t.Errorf("the channel is kept: %v", err)
			}
		})
	}
	reading.Wait() // none waits for a lender that does not move, nor for a pipe that such a one has
	if n := len(p.borrower.pipes); n != 0 {
		t.Fatalf("%d pipes are still open", n)
	}

	ch.way = &pipes{deafConn(t, deaf), p.borrower.pipes, time.Millisecond}
	resp, err := p.recv(t.Context())
	if err != nil || !bytes.Equal(resp.Tensor.Bytes(), x.Bytes()) || p.lastOffer().redeem == 0 {
		t.Errorf("%v, %+v", err, p.lastOffer())
	}
}

// deafConn connects to a socket that nobody listens to.
func deafConn(t *testing.T, l *net.UnixListener) *net.UnixConn {
	t.Helper()
	conn, err := net.DialUnix("unix", nil, l.Addr().(*net.UnixAddr)) //nolint:forcetypeassert // of a Unix socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// A channel is as good after a rest as before.
func TestPipesAfterRest(t *testing.T) {
	x := random(tensor.Uint8, tensor.Shape{minLent})
	p := newBlindPair(t, responses(x))
	ch := p.open()
	// the time that the last message had is over
	if err := ch.conn.SetWriteDeadline(time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	resp, err := p.recv(t.Context())
	if err != nil || !bytes.Equal(resp.Tensor.Bytes(), x.Bytes()) || p.lastOffer().redeem != 0 {
		t.Errorf("%v, %+v", err, p.lastOffer())
	}
}
