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

// retryAfter is how long a peer to which no channel could be opened is not offered one.
const retryAfter = time.Minute

// Done receives the response to a request for a tensor, or why there is none.
type Done = func(*message.RecvTensorResponse, error)

// Task is asked for tensors.
type Task interface {
	// StartRecv asks for a tensor. It calls done once, and does not wait for that.
	StartRecv(ctx context.Context, req *message.RecvTensorRequest, done func(*message.RecvTensorResponse, error))
}

// Ways lead to one task.
type Routes struct {
	Main  Task // the main channel
	Large Task // a connection on which no small message waits for a large tensor
}

// Borrower receives tensors from the tasks of clusters, large ones by reading their memory. Its
// methods may be called concurrently.
type Borrower struct {
	log  *slog.Logger
	life context.Context // ends when the borrower is closed
	end  context.CancelFunc
	work sync.WaitGroup // channels

	pipes chan struct{} // has an element for each that is open
	blind bool          // no memory is read, as if the system did not let it

	borrowed atomic.Int64 // bytes of tensors that are being read

	mu     sync.Mutex
	closed bool             // guarded by mu
	peers  map[string]*peer // guarded by mu; by address
}

// peer is a task that lends, or may come to.
type peer struct {
	channel atomic.Pointer[channel] // nil while there is none
	busy    atomic.Bool             // one is being opened
	notYet  atomic.Int64            // no channel is offered before that time, in Unix nanoseconds
	asked   atomic.Int32            // requests for one tensor that it has not answered yet
	batches atomic.Bool             // it takes requests for several tensors
	greeted atomic.Int32            // how often it was asked whether it does
	known   known
}

// NewBorrower returns a borrower without channels. Close must be called when it is no longer used.
func NewBorrower(log *slog.Logger) *Borrower {
	b := &Borrower{log: log, pipes: make(chan struct{}, maxPipes), peers: map[string]*peer{}}
	b.life, b.end = context.WithCancel(context.Background())
	return b
}

// StartRecv asks the task at an address for a tensor, and calls done once with the response as if
// the tensor had come with it: as the task does, perhaps, or on a goroutine of its own.
func (b *Borrower) StartRecv(ctx context.Context, address string, req *message.RecvTensorRequest, ways Routes, done Done) {
	p := b.peer(address)
	to := ways.Main
	habit := p.known.of(req.Key)
	if habit == large {
		to = ways.Large
	}
	ch := p.channel.Load()
	asked := *req
	if supported {
		asked.Transport = p.offer(ch)
	}
	p.asked.Add(1)
	to.StartRecv(ctx, &asked, func(resp *message.RecvTensorResponse, err error) {
		p.asked.Add(-1)
		switch {
		case err != nil:
			if habit == large {
				p.known.forget() // the other connection may be better
			}
			done(nil, err)
			return
		case resp.Transport == nil:
			p.known.learn(req.Key, habitOf(resp))
			done(resp, nil)
			return
		}
		r, err := decodeReply(resp.Transport)
		resp.Transport = nil
		switch {
		case resp.Tensor.Initialized() || resp.Dead:
			if err == nil {
				p.batches.Store(r.batches)
			}
			if err == nil && r.socket != "" {
				b.open(p, r)
			}
			p.known.learn(req.Key, habitOf(resp))
			done(resp, nil)
		case err != nil || ch == nil || r.ticket == 0:
			done(nil, status.Internalf("could not parse rpc response: a tensor went a way that nobody offered"))
		default:
			p.known.learn(req.Key, alone)
			if r.slot != 0 && ch.slots != nil && p.asked.Load() == 0 {
				// nobody waits for who brought the response
				b.fetch(ctx, ch, r, resp, &asked, ways.Large, done)
			} else {
				go b.fetch(ctx, ch, r, resp, &asked, ways.Large, done)
			}
		}
	})
}

// fetch adds the tensor that is lent to a response, or asks for it as bytes.
func (b *Borrower) fetch(
	ctx context.Context, ch *channel, r *reply, resp *message.RecvTensorResponse, req *message.RecvTensorRequest, to Task, done Done,
) {
	t, err := b.borrow(ctx, ch, r)
	switch {
	case err == nil:
		resp.Tensor = t
		done(resp, nil)
	case ctx.Err() != nil:
		done(nil, status.FromContext(ctx, "receiving "+req.Key))
	default:
		b.log.Debug("a tensor could not be read where it lies", "key", req.Key, "error", err)
		req.Transport = (&offer{channel: ch.number, redeem: r.ticket}).encode()
		to.StartRecv(ctx, req, done)
	}
}

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

// Offers of a borrower that has no channel.
var (
	noChannel = (&offer{}).encode()
	greets    = (&offer{greets: true}).encode()
)

func (p *peer) offer(ch *channel) *anypb.Any {
	switch {
	case ch != nil:
		return ch.offer
	case !p.batches.Load() && p.greeted.Load() < greetings:
		p.greeted.Add(1)
		return greets
	case p.notYet.Load() > time.Now().UnixNano():
		return nil
	}
	return noChannel
}

// open follows an invitation. Nobody but Close waits for that.
func (b *Borrower) open(p *peer, r *reply) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || p.channel.Load() != nil || !p.busy.CompareAndSwap(false, true) {
		return
	}
	b.work.Go(func() {
		ch, err := b.dial(r)
		if err != nil {
			b.log.Debug("large tensors are received as bytes", "error", err)
			p.notYet.Store(time.Now().Add(retryAfter).UnixNano())
		} else {
			p.channel.Store(ch)
		}
		p.busy.Store(false)
		if err == nil {
			ch.watch(b.life)
			p.channel.CompareAndSwap(ch, nil)
		}
	})
}

// Able reports whether no peer has refused yet to have its memory read.
func (b *Borrower) CanReadMemory() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.peers {
		if p.notYet.Load() != 0 {
			return false
		}
	}
	return supported
}

var errTooMuch = errors.New("too much is borrowed at once")

// borrow copies a tensor that is lent. Whatever comes of it, the lender learns that it is over,
// unless it has to be redeemed.
func (b *Borrower) borrow(ctx context.Context, ch *channel, r *reply) (t tensor.Tensor, err error) {
	if err := ch.lends(r); err != nil { // before memory is taken
		return t, err
	}
	if r.shape.NumElements() > maxLent/int64(r.dtype.Size()) {
		return t, errTooMuch
	}
	size := r.shape.NumElements() * int64(r.dtype.Size())
	defer b.borrowed.Add(-size)
	if b.borrowed.Add(size) > maxLent {
		return t, errTooMuch
	}
	if t, err = tensor.AllocShared(r.dtype, r.shape); err != nil {
		return t, err
	}
	if err = ch.read(ctx, t.Bytes(), r); err != nil {
		t.Release()
	}
	if err == nil || ctx.Err() != nil {
		ch.giveBack(r)
	}
	return t, err
}

// Close ends all channels.
func (b *Borrower) Close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.end()
	b.work.Wait()
}
