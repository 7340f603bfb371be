package samehost

import (
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	mathrand "math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"unsafe"

	"google.golang.org/protobuf/types/known/anypb"

	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

const (
	// minLent is the size in bytes from which tensors are lent. Smaller ones are sent in the time
	// that the rest takes.
	minLent = 256 << 10
	// maxLent bounds the bytes that a task lends at a time, and those that it borrows.
	maxLent = 4 << 30
	// socketPrefix begins the names of lenders' sockets, which are in Linux's abstract namespace.
	socketPrefix = "@weft-transfer-"
	secretSize   = 32
)

// lendable reports whether tensors of a type are lent: those whose bytes are all valid elements.
func lendable(t tensor.DType) bool { return t.Valid() && t.Size() > 0 && t != tensor.Bool }

// Lender lends the tensors that a task produces. Its methods may be called concurrently.
type Lender struct {
	log *slog.Logger

	held atomic.Int64 // bytes of all loans
	lent atomic.Int64 // loans there ever were

	reclaim func() // sweep

	mu       sync.Mutex
	closed   bool              // guarded by mu
	door     *door             // guarded by mu; nil until the first invitation
	loans    map[uint64]*loan  // guarded by mu; by ticket
	channels map[uint64]*slots // guarded by mu; by number; nil for one without slots
}

// loan is a tensor that a borrower may read.
type loan struct {
	// the ticket, which the borrower reads from here, until the tensor is released
	word    atomic.Uint64
	tensor  tensor.Tensor
	channel uint64
	step    int64
	handed  bool // it is being handed over; guarded by Lender.mu
	over    bool // its step is; guarded by Lender.mu

	slots *slots // through which it is given back, perhaps; nil for none; guarded by Lender.mu
	slot  int
}

// NewLender returns a lender that listens once it has somebody to invite. Close must be called when
// it is no longer used.
func NewLender(log *slog.Logger) *Lender {
	l := &Lender{log: log, loans: map[uint64]*loan{}, channels: map[uint64]*slots{}}
	l.reclaim = l.sweep
	return l
}

// Lend takes a large tensor out of a response and puts in where it can be read, if the request
// offers that, and reports whether it did. It invites a borrower that has no channel yet.
func (l *Lender) Lend(req *message.RecvTensorRequest, resp *message.RecvTensorResponse) bool {
	if req.Transport == nil {
		return false
	}
	o, ok := decodeOffer(req.Transport)
	if !ok {
		return false
	}
	if o.greets {
		resp.Transport = abilities
	}
	if !supported || resp.Dead || len(resp.Tensor.Bytes()) < minLent || !lendable(resp.Tensor.DType()) {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	slots, ok := l.channels[o.channel]
	if !ok {
		if invitation := l.inviteLocked(); invitation != nil {
			resp.Transport = invitation
		}
		return false
	}
	l.sweepLocked(slots)
	size := int64(len(resp.Tensor.Bytes()))
	if l.held.Load()+size > maxLent {
		return false
	}
	n := &loan{tensor: resp.Tensor, channel: o.channel, step: req.StepID}
	ticket := number()
	n.word.Store(ticket)
	l.loans[ticket] = n
	l.held.Add(size)
	l.lent.Add(1)
	r := reply{
		ticket: ticket, word: address(unsafe.Pointer(&n.word)), elements: address(unsafe.Pointer(unsafe.SliceData(n.tensor.Bytes()))),
		dtype: n.tensor.DType(), shape: n.tensor.Shape(),
	}
	if slots != nil && size <= maxSlotted {
		r.slot = slots.take(n)
		n.tensor.KeptFor(&l.reclaim)
	}
	resp.Tensor, resp.Transport = tensor.Tensor{}, r.encode()
	return true
}

// abilities is the answer to a borrower that wants to know what a lender can do.
var abilities = (&reply{batches: true}).encode()

// address returns where something lies that is not moved as long as it is used.
func address(p unsafe.Pointer) uint64 { return uint64(uintptr(p)) }

// number returns a random number that is not 0, hard to guess.
func number() uint64 {
	for {
		if n := mathrand.Uint64(); n != 0 {
			return n
		}
	}
}

// inviteLocked returns an invitation, or nil where nobody can be invited.
func (l *Lender) inviteLocked() *anypb.Any {
	if l.door == nil {
		l.door = l.open()
	}
	return l.door.invitation
}

// open listens under a new name.
func (l *Lender) open() *door {
	d := &door{lender: l, secret: make([]byte, secretSize), conns: map[*net.UnixConn]struct{}{}}
	name := make([]byte, 16)
	_, _ = rand.Read(name) // it never fails
	_, _ = rand.Read(d.secret)
	r := reply{socket: socketPrefix + hex.EncodeToString(name), secret: d.secret, batches: true}
	var err error
	if d.listener, err = net.ListenUnix("unix", &net.UnixAddr{Name: r.socket, Net: "unix"}); err != nil {
		l.log.Debug("large tensors are sent, and not lent", "error", err)
		return d
	}
	d.invitation = r.encode()
	d.work.Go(d.accept)
	return d
}

// Redeem answers a request for a tensor that was lent and could not be read. It returns neither a
// response nor an error if the request is another one.
func (l *Lender) FetchLeased(req *message.RecvTensorRequest) (*message.RecvTensorResponse, error) {
	if req.Transport == nil {
		return nil, nil //nolint:nilnil // see above
	}
	o, ok := decodeOffer(req.Transport)
	if !ok || o.redeem == 0 {
		return nil, nil //nolint:nilnil // see above
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.loans[o.redeem]
	if n == nil || n.over || n.step != req.StepID || n.channel != o.channel {
		return nil, status.Abortedf("The tensor %s is no longer kept for whoever could not read it.", req.Key).Derive()
	}
	t := n.tensor.Retain()
	l.endLocked(o.redeem, n)
	return &message.RecvTensorResponse{Tensor: t}, nil
}

// EndStep releases what is lent of a step, but what is being handed over: that is kept until the
// borrower has it.
func (l *Lender) EndStep(step int64) {
	if l.held.Load() == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for ticket, n := range l.loans {
		switch {
		case n.step != step:
		case n.handed:
			n.over = true
		default:
			l.endLocked(ticket, n)
		}
	}
}

// endLocked ends a loan. Whoever still reads finds out by the word.
func (l *Lender) endLocked(ticket uint64, n *loan) {
	delete(l.loans, ticket)
	n.leave()
	l.held.Add(-int64(len(n.tensor.Bytes())))
	n.word.Store(0)
	n.tensor.Release()
}

// returned ends a loan of a channel at the borrower's word.
func (l *Lender) returned(channel, ticket uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := l.loans[ticket]; n != nil && n.channel == channel {
		l.endLocked(ticket, n)
	}
}

// Held returns the bytes that are lent.
func (l *Lender) LeasedBytes() int64 {
	l.sweep()
	return l.held.Load()
}

// Lent returns how many tensors have been lent.
func (l *Lender) LeaseCount() int64 { return l.lent.Load() }

// Close ends all channels and loans, and waits for whoever serves them.
func (l *Lender) Close() {
	l.mu.Lock()
	l.closed = true
	d := l.door
	l.mu.Unlock()
	if d != nil {
		d.close()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for ticket, n := range l.loans {
		l.endLocked(ticket, n)
	}
}
