package samehost

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"google.golang.org/protobuf/types/known/anypb"

	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// limit is how long something may take that should happen at once.
const limit = 30 * time.Second

// pair is a borrower and the task that it borrows from.
type pair struct {
	t        *testing.T
	lender   *Lender
	borrower *Borrower
	produce  func() *message.RecvTensorResponse
	// changes what was lent before the borrower hears of it; may be nil
	meddle func(*message.RecvTensorResponse)
	asked  []*anypb.Any // options of all requests
}

// newPair makes a pair whose lender has what produce returns.
type newPair func(t *testing.T, produce func() *message.RecvTensorResponse) *pair

// eachWay runs a test with lenders whose memory can be read, and with such that have to hand it
// over.
func eachWay(t *testing.T, test func(t *testing.T, newPair newPair)) {
	t.Run("memory", func(t *testing.T) { test(t, newSeeingPair) })
	t.Run("pipes", func(t *testing.T) { test(t, newBlindPair) })
}

func newBlindPair(t *testing.T, produce func() *message.RecvTensorResponse) *pair {
	t.Helper()
	p := newSeeingPair(t, produce)
	p.borrower.blind = true
	return p
}

func newSeeingPair(t *testing.T, produce func() *message.RecvTensorResponse) *pair {
	t.Helper()
	p := &pair{t: t, lender: NewLender(slog.New(slog.DiscardHandler)), borrower: NewBorrower(slog.New(slog.DiscardHandler)), produce: produce}
	t.Cleanup(func() {
		p.borrower.Close()
		p.lender.Close()
	})
	return p
}

// call is the main channel.
func (p *pair) call(_ context.Context, req *message.RecvTensorRequest, done Done) {
	p.asked = append(p.asked, req.Transport)
	resp, err := p.lender.FetchLeased(req)
	if resp == nil && err == nil {
		resp = p.produce()
		if p.lender.Lend(req, resp) && p.meddle != nil {
			p.meddle(resp)
		}
	}
	done(resp, err)
}

func (p *pair) recv(ctx context.Context) (resp *message.RecvTensorResponse, err error) {
	var came sync.WaitGroup
	came.Add(1)
	p.borrower.StartRecv(ctx, "there", &message.RecvTensorRequest{StepID: 7, Key: "k", RequestID: 1}, Routes{caller(p.call), caller(p.call)},
		func(r *message.RecvTensorResponse, e error) {
			resp, err = r, e
			came.Done()
		})
	came.Wait()
	return resp, err
}

// open opens a channel as a first tensor does. It skips the test where the system does not let it.
func (p *pair) open() *channel {
	p.t.Helper()
	resp, err := p.recv(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	resp.Release()
	peer := p.borrower.peer("there")
	p.until("there is a channel", func() bool {
		if peer.notYet.Load() != 0 {
			p.t.Skip("this process may not read its memory as if it were another's")
		}
		return peer.channel.Load() != nil
	})
	return peer.channel.Load()
}

func (p *pair) until(what string, reached func() bool) {
	p.t.Helper()
	for end := time.Now().Add(limit); !reached(); {
		if time.Now().After(end) {
			p.t.Fatalf("not so after %v: %s", limit, what)
		}
		time.Sleep(time.Millisecond) //nolint:forbidigo // polls
	}
}

// lendings returns how many loans and channels the lender has.
func (p *pair) lendings() (loans, channels int) {
	p.lender.mu.Lock()
	defer p.lender.mu.Unlock()
	return len(p.lender.loans), len(p.lender.channels)
}

// address returns where the lender's borrowers come in.
func (p *pair) address() string {
	p.lender.mu.Lock()
	defer p.lender.mu.Unlock()
	return p.lender.door.listener.Addr().String()
}

// short returns the address of memory that is not as large as tensors that are lent.
func (p *pair) short() uint64 {
	p.t.Helper()
	mem, err := syscall.Mmap(-1, 0, 2*minLent, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = syscall.Munmap(mem) })
	if err := syscall.Mprotect(mem[minLent/2:], syscall.PROT_NONE); err != nil {
		p.t.Fatal(err)
	}
	return address(unsafe.Pointer(unsafe.SliceData(mem)))
}

// lastOffer returns what the last request offered.
func (p *pair) lastOffer() offer {
	o, _ := decodeOffer(p.asked[len(p.asked)-1])
	return o
}

// random returns a tensor of random bytes.
func random(dtype tensor.DType, shape tensor.Shape) tensor.Tensor {
	t, err := tensor.Alloc(dtype, shape)
	if err != nil {
		panic(err)
	}
	rng := rand.NewChaCha8([32]byte{1})
	_, _ = rng.Read(t.Bytes())
	return t
}

func responses(ts ...tensor.Tensor) func() *message.RecvTensorResponse {
	i := -1
	return func() *message.RecvTensorResponse {
		i = min(i+1, len(ts)-1)
		return &message.RecvTensorResponse{Tensor: ts[i].Retain(), SendStartMicros: 3}
	}
}

// The bits are equal whichever way a tensor takes, and the first is the only one that is sent.
func TestBorrow(t *testing.T) {
	eachWay(t, func(t *testing.T, newPair newPair) {
		for _, x := range []tensor.Tensor{
			random(tensor.Float32, tensor.Shape{minLent / 4}),
			random(tensor.Float64, tensor.Shape{3, 1, minLent}),
			random(tensor.BFloat16, tensor.Shape{chunk/2 + 5, 3}),
			random(tensor.Uint8, tensor.Shape{minLent + 1}),
		} {
			p := newPair(t, responses(x))
			p.open()
			for range 3 {
				resp, err := p.recv(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if resp.Tensor.DType() != x.DType() || !resp.Tensor.Shape().Equal(x.Shape()) || !bytes.Equal(resp.Tensor.Bytes(), x.Bytes()) {
					t.Errorf("%v %v has changed on its way", x.DType(), x.Shape())
				}
				if resp.Tensor.SharesBuffer(&x) || p.lastOffer().channel == 0 || resp.SendStartMicros != 3 || resp.Transport != nil {
					t.Error("the tensor was not borrowed")
				}
				resp.Release()
			}
			p.until("nothing is lent any more", func() bool { return p.lender.LeasedBytes() == 0 })
			if n := p.borrower.borrowed.Load(); n != 0 {
				t.Errorf("%d bytes are still being read", n)
			}
		}
	})
}

// Small tensors, those with bytes that are no elements, and those that are no memory are sent.
func TestNotLent(t *testing.T) {
	bools, err := tensor.Zeros(tensor.Bool, tensor.Shape{minLent})
	if err != nil {
		t.Fatal(err)
	}
	p := newSeeingPair(t, responses(random(tensor.Uint8, tensor.Shape{minLent}), random(tensor.Uint8, tensor.Shape{minLent - 1}),
		bools, tensor.Vector("a"), tensor.Tensor{}))
	p.open()
	for range 4 {
		if _, err := p.recv(t.Context()); err != nil || p.lender.LeasedBytes() != 0 {
			t.Errorf("%v, %d bytes are lent", err, p.lender.LeasedBytes())
		}
	}
	p.produce = func() *message.RecvTensorResponse {
		return &message.RecvTensorResponse{Tensor: random(tensor.Uint8, tensor.Shape{minLent}), Dead: true}
	}
	if resp, err := p.recv(t.Context()); err != nil || !resp.Dead || p.lender.LeasedBytes() != 0 {
		t.Errorf("%v, %v", resp, err)
	}
}

// What cannot be read is sent, and nothing is lost.
func TestRedeem(t *testing.T) {
	x := random(tensor.Float32, tensor.Shape{minLent})
	for name, meddle := range map[string]func(p *pair, ch *channel, r *reply){
		"the memory is another's":  func(_ *pair, ch *channel, _ *reply) { ch.way = memory(1 << 30) },
		"the ticket is another's":  func(_ *pair, _ *channel, r *reply) { r.word += 8 },
		"the elements are nowhere": func(_ *pair, _ *channel, r *reply) { r.elements = 1 << 60 },
		"the elements end early":   func(p *pair, _ *channel, r *reply) { r.elements = p.short() },
		"the tensor is too large":  func(_ *pair, _ *channel, r *reply) { r.shape = tensor.Shape{1 << 40} },
		"the channel is gone":      func(p *pair, ch *channel, _ *reply) { ch.conn.Close(); ch.way = memory(1 << 30) },
	} {
		t.Run(name, func(t *testing.T) {
			p := newSeeingPair(t, responses(x))
			ch := p.open()
			p.meddle = func(resp *message.RecvTensorResponse) {
				r, err := decodeReply(resp.Transport)
				if err != nil {
					t.Fatal(err)
				}
				meddle(p, ch, r)
				resp.Transport = r.encode()
			}
			resp, err := p.recv(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(resp.Tensor.Bytes(), x.Bytes()) {
				t.Error("the tensor has changed on its way")
			}
			if p.lastOffer().redeem == 0 || p.lender.LeasedBytes() != 0 || p.borrower.borrowed.Load() != 0 {
				t.Error("it was not redeemed")
			}
		})
	}
}

// A tensor that was released while it was read is no tensor.
func TestStepEnds(t *testing.T) {
	eachWay(t, func(t *testing.T, newPair newPair) {
		p := newPair(t, responses(random(tensor.Float32, tensor.Shape{minLent})))
		p.open()
		p.meddle = func(*message.RecvTensorResponse) { p.lender.EndStep(7) }
		if _, err := p.recv(t.Context()); status.CodeOf(err) != status.Aborted {
			t.Errorf("got %v", err)
		}
		if n := p.lender.LeasedBytes(); n != 0 {
			t.Errorf("%d bytes are still lent", n)
		}
	})
}

func TestCancel(t *testing.T) {
	eachWay(t, func(t *testing.T, newPair newPair) {
		p := newPair(t, responses(random(tensor.Float32, tensor.Shape{minLent})))
		p.open()
		ctx, cancel := context.WithCancel(t.Context())
		p.meddle = func(*message.RecvTensorResponse) { cancel() }
		if _, err := p.recv(ctx); status.CodeOf(err) != status.Cancelled {
			t.Errorf("got %v", err)
		}
		p.until("nothing is lent any more", func() bool { return p.lender.LeasedBytes() == 0 })
	})
}

// A lender that has started anew knows no channel of its life before.
func TestLenderRestarts(t *testing.T) {
	eachWay(t, func(t *testing.T, newPair newPair) {
		p := newPair(t, responses(random(tensor.Float32, tensor.Shape{minLent})))
		before := p.open()
		p.lender.Close()
		p.until("the channel has ended", func() bool { return p.borrower.peer("there").channel.Load() == nil })
		p.lender = NewLender(slog.New(slog.DiscardHandler))
		if after := p.open(); after == before {
			t.Error("the channel is the same")
		}
	})
}

// A lender lends no more than it may.
func TestMaxLent(t *testing.T) {
	eachWay(t, func(t *testing.T, newPair newPair) {
		p := newPair(t, responses(random(tensor.Uint8, tensor.Shape{minLent})))
		p.open()
		p.lender.held.Add(maxLent - minLent + 1)
		defer p.lender.held.Add(-(maxLent - minLent + 1))
		resp, err := p.recv(t.Context())
		if loans, _ := p.lendings(); err != nil || !resp.Tensor.Initialized() || loans != 0 {
			t.Errorf("%v, %v, %d loans", resp, err, loans)
		}
	})
}

// Whoever does not know the secret gets no channel, and hears nothing.
func TestSecret(t *testing.T) {
	p := newSeeingPair(t, responses(random(tensor.Uint8, tensor.Shape{minLent})))
	p.open()
	conn, err := net.Dial("unix", p.address())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write(make([]byte, secretSize)); err != nil {
		t.Fatal(err)
	}
	if n, err := conn.Read(make([]byte, 1)); n > 0 || err == nil {
		t.Errorf("a stranger got %d bytes, %v", n, err)
	}
	if _, n := p.lendings(); n != 1 {
		t.Errorf("there are %d channels", n)
	}
}

// A lender that lies about itself gets no borrower.
func TestImpostor(t *testing.T) {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socketPrefix + fmt.Sprintf("%016x", rand.Uint64()), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			hello := make([]byte, helloSize) // a word at address 16, which nobody has
			binary.LittleEndian.PutUint64(hello[8:], 16)
			_, _ = conn.Write(hello)
			conn.Close()
		}
	}()
	b := NewBorrower(slog.New(slog.DiscardHandler))
	defer b.Close()
	for _, r := range []reply{
		{socket: l.Addr().String(), secret: make([]byte, secretSize)},
		{socket: l.Addr().String()},
		{socket: "@other-service", secret: make([]byte, secretSize)},
		{socket: socketPrefix + "../x", secret: make([]byte, secretSize)},
		{socket: socketPrefix + "44556677", secret: make([]byte, secretSize)},
	} {
		if ch, err := b.dial(&r); err == nil {
			ch.conn.Close()
			t.Errorf("%q has a borrower", r.socket)
		}
	}
}

// A peer that answers what nobody offered is an error, and no crash.
func TestUninvited(t *testing.T) {
	lend := reply{ticket: 1, elements: 2, word: 3, dtype: tensor.Float32, shape: tensor.Shape{1 << 20}}
	for name, options := range map[string]*anypb.Any{
		"a loan without a channel": lend.encode(), "another type": {TypeUrl: "x"}, "nothing": {}, "noise": {TypeUrl: replyType, Value: []byte{0xff}},
	} {
		p := newSeeingPair(t, func() *message.RecvTensorResponse { return &message.RecvTensorResponse{Transport: options} })
		if _, err := p.recv(t.Context()); status.CodeOf(err) != status.Internal {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
