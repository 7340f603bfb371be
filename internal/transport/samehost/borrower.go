package samehost

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/types/known/anypb"

	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// retryAfter is the delay before another attempt to open a channel to a peer.
const retryAfter = time.Minute

// Done receives the response to a request for a tensor, or an error.
type Done = func(*message.RecvTensorResponse, error)

// Task is a task that tensors can be requested from.
type Task interface {
	// StartRecv requests a tensor and calls done once. It does not block.
	StartRecv(ctx context.Context, req *message.RecvTensorRequest, done func(*message.RecvTensorResponse, error))
}

// Routes are the connections to one task.
type Routes struct {
	Main  Task // the main channel
	Large Task // a connection on which no small message waits behind a large tensor
}

// Borrower receives tensors from other tasks, large ones by reading their memory. Its methods may
// be called concurrently.
type Borrower struct {
	log      *slog.Logger
	ctx      context.Context // ended by Close
	cancel   context.CancelFunc
	channels sync.WaitGroup // goroutines that open and watch channels

	pipes          chan struct{} // semaphore; one element for each open pipe
	noMemoryAccess bool          // for tests: act as if the system denied access to memory

	borrowedBytes atomic.Int64  // size of the tensors being read
	readBytes     atomic.Uint64 // size of the tensors that have been read

	mu     sync.Mutex
	closed bool             // guarded by mu
	peers  map[string]*peer // by address; guarded by mu
}

// peer is the state of a borrower about one task.
type peer struct {
	channel atomic.Pointer[channel] // nil if there is none
	opening atomic.Bool             // a channel is being opened
	// time before which no channel is offered, in Unix ns; 0 if none failed
	retryAt        atomic.Int64
	pending        atomic.Int32 // requests for one tensor without a response
	acceptsBatches atomic.Bool  // the task accepts batch requests
	probes         atomic.Int32 // number of probes for batch requests
	routes         routeCache
}

// NewBorrower returns a borrower without channels. The caller must call Close.
func NewBorrower(log *slog.Logger) *Borrower {
	b := &Borrower{log: log, pipes: make(chan struct{}, maxPipes), peers: map[string]*peer{}}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	return b
}

// StartRecv requests a tensor from the task at an address, and calls done once with the response,
// as if the tensor had been sent in it. It does not block. Done is called by the goroutine that
// delivers the response, or on a new one.
func (b *Borrower) StartRecv(ctx context.Context, address string, req *message.RecvTensorRequest, routes Routes, done Done) {
	p := b.peer(address)
	via := routes.Main
	known := p.routes.lookup(req.Key)
	if known == routeLarge {
		via = routes.Large
	}
	ch := p.channel.Load()
	sent := *req
	if supported {
		sent.Transport = p.offer(ch)
	}
	p.pending.Add(1)
	via.StartRecv(ctx, &sent, func(resp *message.RecvTensorResponse, err error) {
		p.pending.Add(-1)
		switch {
		case err != nil:
			if known == routeLarge {
				p.routes.clear() // the main connection may work
			}
			done(nil, err)
			return
		case resp.Transport == nil:
			p.routes.record(req.Key, routeOf(resp))
			done(resp, nil)
			return
		}
		r, err := decodeReply(resp.Transport)
		resp.Transport = nil
		switch {
		case resp.Tensor.Initialized() || resp.Dead:
			if err == nil {
				p.acceptsBatches.Store(r.acceptsBatches)
			}
			if err == nil && r.socket != "" {
				b.openChannel(p, r)
			}
			p.routes.record(req.Key, routeOf(resp))
			done(resp, nil)
		case err != nil || ch == nil || r.leaseID == 0:
			done(nil, status.Internalf("could not parse rpc response: unexpected transport options"))
		default:
			p.routes.record(req.Key, routeSingle)
			if r.slot != 0 && ch.slots != nil && p.pending.Load() == 0 {
				// no other response waits for this goroutine
				b.fetch(ctx, ch, r, resp, &sent, routes.Large, done)
			} else {
				go b.fetch(ctx, ch, r, resp, &sent, routes.Large, done)
			}
		}
	})
}

// fetch adds the leased tensor to a response, or requests it as bytes.
func (b *Borrower) fetch(
	ctx context.Context, ch *channel, r *reply, resp *message.RecvTensorResponse, req *message.RecvTensorRequest, via Task, done Done,
) {
	t, err := b.borrow(ctx, ch, r)
	switch {
	case err == nil:
		resp.Tensor = t
		done(resp, nil)
	case ctx.Err() != nil:
		done(nil, status.FromContext(ctx, "receiving "+req.Key))
	default:
		b.log.Debug("cannot read a leased tensor; fetching it as bytes", "key", req.Key, "error", err)
		req.Transport = (&offer{channel: ch.number, fetch: r.leaseID}).encode()
		via.StartRecv(ctx, req, done)
	}
}

// peer returns the state of the task at an address.
func (b *Borrower) peer(address string) *peer {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.peers[address]
	if p == nil {
		p = &peer{}
		b.peers[address] = p
	}
	return p
}

// Offers of a borrower without a channel.
var (
	offerNoChannel = (&offer{}).encode()
	offerProbe     = (&offer{probe: true}).encode()
)

// offer returns the offer of the next request, or nil if there is none to make.
func (p *peer) offer(ch *channel) *anypb.Any {
	switch {
	case ch != nil:
		return ch.offer
	case !p.acceptsBatches.Load() && p.probes.Load() < maxProbes:
		p.probes.Add(1)
		return offerProbe
	case p.retryAt.Load() > time.Now().UnixNano():
		return nil
	}
	return offerNoChannel
}

// openChannel opens a channel after a handshake, on a goroutine that Close waits for.
func (b *Borrower) openChannel(p *peer, r *reply) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || p.channel.Load() != nil || !p.opening.CompareAndSwap(false, true) {
		return
	}
	b.channels.Go(func() {
		ch, err := b.dial(r)
		if err != nil {
			b.log.Debug("cannot open a channel; large tensors are received as bytes", "error", err)
			p.retryAt.Store(time.Now().Add(retryAfter).UnixNano())
		} else {
			p.channel.Store(ch)
		}
		p.opening.Store(false)
		if err == nil {
			ch.waitEnd(b.ctx)
			p.channel.CompareAndSwap(ch, nil)
		}
	})
}

// CanReadMemory reports whether no attempt to open a channel has failed so far.
func (b *Borrower) CanReadMemory() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.peers {
		if p.retryAt.Load() != 0 {
			return false
		}
	}
	return supported
}

var errTooMuch = errors.New("too many bytes are borrowed")

// borrow copies a leased tensor. It returns the lease unless the tensor must be fetched as bytes
// afterwards.
func (b *Borrower) borrow(ctx context.Context, ch *channel, r *reply) (t tensor.Tensor, err error) {
	if err := ch.checkLease(r); err != nil { // before memory is allocated
		return t, err
	}
	if r.shape.NumElements() > maxLeasedBytes/int64(r.dtype.Size()) {
		return t, errTooMuch
	}
	size := r.shape.NumElements() * int64(r.dtype.Size())
	defer b.borrowedBytes.Add(-size)
	if b.borrowedBytes.Add(size) > maxLeasedBytes {
		return t, errTooMuch
	}
	if t, err = tensor.AllocShared(r.dtype, r.shape); err != nil {
		return t, err
	}
	if err = ch.read(ctx, t.Bytes(), r); err != nil {
		t.Release()
	} else {
		b.readBytes.Add(uint64(size)) //nolint:gosec // not negative
	}
	if err == nil || ctx.Err() != nil {
		ch.release(r)
	}
	return t, err
}

// ReadBytes returns the size of the tensors that have been read from the memory of other tasks.
func (b *Borrower) ReadBytes() uint64 { return b.readBytes.Load() }

// Close closes all channels and waits for their goroutines.
func (b *Borrower) Close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.cancel()
	b.channels.Wait()
}
