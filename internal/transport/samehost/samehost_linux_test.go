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

// limit bounds the wait for a condition.
const limit = 30 * time.Second

// pair is a borrower and the task that it borrows from.
type pair struct {
	t        *testing.T
	lender   *Lender
	borrower *Borrower
	produce  func() *message.RecvTensorResponse
	// modifies a lease before the borrower sees it; may be nil
	tamper func(*message.RecvTensorResponse)
	offers []*anypb.Any // transport options of all requests
}

// newPair returns a pair whose lender has the tensors that produce returns.
type newPair func(t *testing.T, produce func() *message.RecvTensorResponse) *pair

// eachReader runs a test with each implementation of elementReader.
func eachReader(t *testing.T, test func(t *testing.T, newPair newPair)) {
	t.Run("memory", func(t *testing.T) { test(t, newMemoryPair) })
	t.Run("pipes", func(t *testing.T) { test(t, newPipePair) })
}

func newPipePair(t *testing.T, produce func() *message.RecvTensorResponse) *pair {
	t.Helper()
	p := newMemoryPair(t, produce)
	p.borrower.noMemoryAccess = true
	return p
}

func newMemoryPair(t *testing.T, produce func() *message.RecvTensorResponse) *pair {
	t.Helper()
	p := &pair{t: t, lender: NewLender(slog.New(slog.DiscardHandler)), borrower: NewBorrower(slog.New(slog.DiscardHandler)), produce: produce}
	t.Cleanup(func() {
		p.borrower.Close()
		p.lender.Close()
	})
	return p
}

// call implements the main channel.
func (p *pair) call(_ context.Context, req *message.RecvTensorRequest, done Done) {
	p.offers = append(p.offers, req.Transport)
	resp, err := p.lender.FetchLeased(req)
	if resp == nil && err == nil {
		resp = p.produce()
		if p.lender.Lend(req, resp) && p.tamper != nil {
			p.tamper(resp)
		}
	}
	done(resp, err)
}

func (p *pair) recv(ctx context.Context) (resp *message.RecvTensorResponse, err error) {
	var received sync.WaitGroup
	received.Add(1)
	p.borrower.StartRecv(ctx, "peer", &message.RecvTensorRequest{StepID: 7, Key: "k", RequestID: 1}, Routes{taskFunc(p.call), taskFunc(p.call)},
		func(r *message.RecvTensorResponse, e error) {
			resp, err = r, e
			received.Done()
		})
	received.Wait()
	return resp, err
}

// open opens a channel with a first tensor. It skips the test if the system does not allow it.
func (p *pair) open() *channel {
	p.t.Helper()
	resp, err := p.recv(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	resp.Release()
	peer := p.borrower.peer("peer")
	p.until("the channel is open", func() bool {
		if peer.retryAt.Load() != 0 {
			p.t.Skip("this process may not read memory with process_vm_readv")
		}
		return peer.channel.Load() != nil
	})
	return peer.channel.Load()
}

// until polls a condition until it is true.
func (p *pair) until(what string, reached func() bool) {
	p.t.Helper()
	timeout, poll := time.After(limit), time.NewTicker(time.Millisecond)
	defer poll.Stop()
	for !reached() {
		select {
		case <-poll.C:
		case <-timeout:
			p.t.Fatalf("after %v, this is still false: %s", limit, what)
		}
	}
}

// counts returns the number of leases and channels of the lender.
func (p *pair) counts() (leases, channels int) {
	p.lender.mu.Lock()
	defer p.lender.mu.Unlock()
	return len(p.lender.leases), len(p.lender.channels)
}

// address returns the address of the lender's socket.
func (p *pair) address() string {
	p.lender.mu.Lock()
	defer p.lender.mu.Unlock()
	return p.lender.listener.socket.Addr().String()
}

// short returns the address of memory that is smaller than a leased tensor.
func (p *pair) short() uint64 {
	p.t.Helper()
	mem, err := syscall.Mmap(-1, 0, 2*minLeased, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = syscall.Munmap(mem) })
	if err := syscall.Mprotect(mem[minLeased/2:], syscall.PROT_NONE); err != nil {
		p.t.Fatal(err)
	}
	return addressOf(unsafe.Pointer(unsafe.SliceData(mem)))
}

// lastOffer returns the offer of the last request.
func (p *pair) lastOffer() offer {
	o, _ := decodeOffer(p.offers[len(p.offers)-1])
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

// A tensor is equal whichever way it is transferred, and only the first one is sent as bytes.
func TestBorrow(t *testing.T) {
	eachReader(t, func(t *testing.T, newPair newPair) {
		for _, x := range []tensor.Tensor{
			random(tensor.Float32, tensor.Shape{minLeased / 4}),
			random(tensor.Float64, tensor.Shape{3, 1, minLeased}),
			random(tensor.BFloat16, tensor.Shape{readChunk/2 + 5, 3}),
			random(tensor.Uint8, tensor.Shape{minLeased + 1}),
		} {
			p := newPair(t, responses(x))
			p.open()
			for range 3 {
				resp, err := p.recv(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if resp.Tensor.DType() != x.DType() || !resp.Tensor.Shape().Equal(x.Shape()) || !bytes.Equal(resp.Tensor.Bytes(), x.Bytes()) {
					t.Errorf("received %v %v differs", x.DType(), x.Shape())
				}
				if resp.Tensor.SharesBuffer(&x) || p.lastOffer().channel == 0 || resp.SendStartMicros != 3 || resp.Transport != nil {
					t.Error("the tensor was not borrowed")
				}
				resp.Release()
			}
			p.until("all leases have ended", func() bool { return p.lender.LeasedBytes() == 0 })
			if n := p.borrower.borrowedBytes.Load(); n != 0 {
				t.Errorf("%d bytes are still borrowed", n)
			}
		}
	})
}

// Small tensors, tensors of types that are not lendable, and dead tensors are sent as bytes.
func TestNotLeased(t *testing.T) {
	bools, err := tensor.Zeros(tensor.Bool, tensor.Shape{minLeased})
	if err != nil {
		t.Fatal(err)
	}
	p := newMemoryPair(t, responses(random(tensor.Uint8, tensor.Shape{minLeased}), random(tensor.Uint8, tensor.Shape{minLeased - 1}),
		bools, tensor.Vector("a"), tensor.Tensor{}))
	p.open()
	for range 4 {
		if _, err := p.recv(t.Context()); err != nil || p.lender.LeasedBytes() != 0 {
			t.Errorf("%v, %d bytes are leased", err, p.lender.LeasedBytes())
		}
	}
	p.produce = func() *message.RecvTensorResponse {
		return &message.RecvTensorResponse{Tensor: random(tensor.Uint8, tensor.Shape{minLeased}), Dead: true}
	}
	if resp, err := p.recv(t.Context()); err != nil || !resp.Dead || p.lender.LeasedBytes() != 0 {
		t.Errorf("%v, %v", resp, err)
	}
}

// A leased tensor that cannot be read is fetched as bytes.
func TestFetchLeased(t *testing.T) {
	x := random(tensor.Float32, tensor.Shape{minLeased})
	for name, tamper := range map[string]func(p *pair, ch *channel, r *reply){
		"memory of another process": func(_ *pair, ch *channel, _ *reply) { ch.elementReader = memoryReader(1 << 30) },
		"wrong lease ID":            func(_ *pair, _ *channel, r *reply) { r.idAddr += 8 },
		"wrong address":             func(_ *pair, _ *channel, r *reply) { r.elementsAddr = 1 << 60 },
		"memory ends early":         func(p *pair, _ *channel, r *reply) { r.elementsAddr = p.short() },
		"tensor too large":          func(_ *pair, _ *channel, r *reply) { r.shape = tensor.Shape{1 << 40} },
		"closed channel":            func(p *pair, ch *channel, _ *reply) { ch.conn.Close(); ch.elementReader = memoryReader(1 << 30) },
	} {
		t.Run(name, func(t *testing.T) {
			p := newMemoryPair(t, responses(x))
			ch := p.open()
			p.tamper = func(resp *message.RecvTensorResponse) {
				r, err := decodeReply(resp.Transport)
				if err != nil {
					t.Fatal(err)
				}
				tamper(p, ch, r)
				resp.Transport = r.encode()
			}
			resp, err := p.recv(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(resp.Tensor.Bytes(), x.Bytes()) {
				t.Error("the received tensor differs")
			}
			if p.lastOffer().fetch == 0 || p.lender.LeasedBytes() != 0 || p.borrower.borrowedBytes.Load() != 0 {
				t.Error("the tensor was not fetched")
			}
		})
	}
}

// A borrower discards a tensor that was released while it was read.
func TestStepEnds(t *testing.T) {
	eachReader(t, func(t *testing.T, newPair newPair) {
		p := newPair(t, responses(random(tensor.Float32, tensor.Shape{minLeased})))
		p.open()
		p.tamper = func(*message.RecvTensorResponse) { p.lender.EndStep(7) }
		if _, err := p.recv(t.Context()); status.CodeOf(err) != status.Aborted {
			t.Errorf("got %v", err)
		}
		if n := p.lender.LeasedBytes(); n != 0 {
			t.Errorf("%d bytes are still leased", n)
		}
	})
}

func TestCancel(t *testing.T) {
	eachReader(t, func(t *testing.T, newPair newPair) {
		p := newPair(t, responses(random(tensor.Float32, tensor.Shape{minLeased})))
		p.open()
		ctx, cancel := context.WithCancel(t.Context())
		p.tamper = func(*message.RecvTensorResponse) { cancel() }
		if _, err := p.recv(ctx); status.CodeOf(err) != status.Cancelled {
			t.Errorf("got %v", err)
		}
		p.until("all leases have ended", func() bool { return p.lender.LeasedBytes() == 0 })
	})
}

// A restarted lender does not know the channels of its predecessor.
func TestLenderRestarts(t *testing.T) {
	eachReader(t, func(t *testing.T, newPair newPair) {
		p := newPair(t, responses(random(tensor.Float32, tensor.Shape{minLeased})))
		before := p.open()
		p.lender.Close()
		p.until("the channel is closed", func() bool { return p.borrower.peer("peer").channel.Load() == nil })
		p.lender = NewLender(slog.New(slog.DiscardHandler))
		if after := p.open(); after == before {
			t.Error("the old channel is used")
		}
	})
}

// A lender leases no more than maxLeasedBytes.
func TestMaxLeasedBytes(t *testing.T) {
	eachReader(t, func(t *testing.T, newPair newPair) {
		p := newPair(t, responses(random(tensor.Uint8, tensor.Shape{minLeased})))
		p.open()
		p.lender.leasedBytes.Add(maxLeasedBytes - minLeased + 1)
		defer p.lender.leasedBytes.Add(-(maxLeasedBytes - minLeased + 1))
		resp, err := p.recv(t.Context())
		if leases, _ := p.counts(); err != nil || !resp.Tensor.Initialized() || leases != 0 {
			t.Errorf("%v, %v, %d leases", resp, err, leases)
		}
	})
}

// A connection without the secret gets neither a channel nor data.
func TestSecret(t *testing.T) {
	p := newMemoryPair(t, responses(random(tensor.Uint8, tensor.Shape{minLeased})))
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
		t.Errorf("received %d bytes without the secret, %v", n, err)
	}
	if _, n := p.counts(); n != 1 {
		t.Errorf("there are %d channels", n)
	}
}

// The borrower refuses a lender whose memory does not have the probe word.
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
			hello := make([]byte, helloSize) // the address of the probe word is invalid
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
			t.Errorf("the borrower accepts %q", r.socket)
		}
	}
}

// A reply that does not fit the offer is an error.
func TestUnexpectedReply(t *testing.T) {
	lend := reply{leaseID: 1, elementsAddr: 2, idAddr: 3, dtype: tensor.Float32, shape: tensor.Shape{1 << 20}}
	for name, options := range map[string]*anypb.Any{
		"a lease without a channel": lend.encode(), "another type": {TypeUrl: "x"}, "nothing": {}, "garbage": {TypeUrl: replyType, Value: []byte{0xff}},
	} {
		p := newMemoryPair(t, func() *message.RecvTensorResponse { return &message.RecvTensorResponse{Transport: options} })
		if _, err := p.recv(t.Context()); status.CodeOf(err) != status.Internal {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
