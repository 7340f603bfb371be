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
	"github.com/weft-ml/weft/internal/sys/failpoint"
	"github.com/weft-ml/weft/internal/sys/tensormem"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

const (
	// minLeased is the smallest tensor that is leased, in bytes. Sending a smaller one takes no
	// longer than the overhead of a lease.
	minLeased = 256 << 10
	// maxLeasedBytes bounds the bytes that a task leases at a time, and those that it borrows.
	maxLeasedBytes = 4 << 30
	// socketPrefix is the prefix of the names of lenders' sockets, in Linux's abstract namespace.
	socketPrefix = "@weft-transfer-"
	secretSize   = 32
)

// lendable reports whether tensors of a type can be leased: any bytes must be valid elements.
func lendable(t tensor.DType) bool { return t.Valid() && t.Size() > 0 && t != tensor.Bool }

// Lender leases the large tensors that a task produces. Its methods may be called concurrently.
type Lender struct {
	log *slog.Logger

	leasedBytes atomic.Int64 // size of all leased tensors
	leaseCount  atomic.Int64 // number of leases since the start
	lentBytes   atomic.Int64 // size of all tensors that have been leased since the start

	reclaim func() // sweep, as a value that tensors can refer to

	mu       sync.Mutex
	closed   bool              // guarded by mu
	listener *channelListener  // nil before the first handshake; guarded by mu
	leases   map[uint64]*lease // by lease ID; guarded by mu
	channels map[uint64]*slots // by channel number; nil for a channel without slots; guarded by mu
}

// lease is a tensor that a borrower may read.
type lease struct {
	// the lease ID until the tensor is released, then 0; the borrower reads it from here
	idWord    atomic.Uint64
	tensor    tensor.Tensor
	channel   uint64
	step      int64
	inPipe    bool // it is being written to a pipe; guarded by Lender.mu
	stepEnded bool // guarded by Lender.mu

	slots *slots // slots through which it may be returned; nil for none; guarded by Lender.mu
	slot  int    // index into slots
}

// NewLender returns a lender. It listens after the first handshake. The caller must call Close.
func NewLender(log *slog.Logger) *Lender {
	l := &Lender{log: log, leases: map[uint64]*lease{}, channels: map[uint64]*slots{}}
	l.reclaim = l.sweep
	return l
}

// Lend replaces a large tensor of a response by a lease, if the request offers to borrow, and
// reports whether it did. To a borrower without a channel it adds a handshake instead.
func (l *Lender) Lend(req *message.RecvTensorRequest, resp *message.RecvTensorResponse) bool {
	if failpoint.Hit("samehost/lend") != nil {
		return false
	}
	if req.Transport == nil {
		return false
	}
	o, ok := decodeOffer(req.Transport)
	if !ok {
		return false
	}
	if o.probe {
		resp.Transport = capabilities
	}
	if !supported || resp.Dead || len(resp.Tensor.Bytes()) < minLeased || !lendable(resp.Tensor.DType()) {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	slots, ok := l.channels[o.channel]
	if !ok {
		if handshake := l.handshakeLocked(); handshake != nil {
			resp.Transport = handshake
		}
		return false
	}
	l.sweepLocked(slots)
	size := int64(len(resp.Tensor.Bytes()))
	if l.leasedBytes.Load()+size > maxLeasedBytes {
		return false
	}
	n := &lease{tensor: resp.Tensor, channel: o.channel, step: req.StepID}
	id := randomID()
	n.idWord.Store(id)
	l.leases[id] = n
	l.leasedBytes.Add(size)
	l.leaseCount.Add(1)
	l.lentBytes.Add(size)
	r := reply{
		leaseID: id, idAddr: addressOf(unsafe.Pointer(&n.idWord)), elementsAddr: addressOf(unsafe.Pointer(unsafe.SliceData(n.tensor.Bytes()))),
		dtype: n.tensor.DType(), shape: n.tensor.Shape(),
	}
	if slots != nil && size <= maxSlotSize {
		r.slot = slots.assign(n)
		tensormem.SetReclaimer(&n.tensor, &l.reclaim)
	}
	resp.Tensor, resp.Transport = tensor.Tensor{}, r.encode()
	return true
}

// capabilities is the reply to a probe.
var capabilities = (&reply{acceptsBatches: true}).encode()

// addressOf returns the address of memory that the garbage collector does not move while it is
// referenced.
func addressOf(p unsafe.Pointer) uint64 { return uint64(uintptr(p)) }

// randomID returns a random number other than 0, which other processes cannot guess.
func randomID() uint64 {
	for {
		if n := mathrand.Uint64(); n != 0 {
			return n
		}
	}
}

// handshakeLocked returns the reply that announces the socket, or nil if there is no socket.
func (l *Lender) handshakeLocked() *anypb.Any {
	if l.listener == nil {
		l.listener = l.listen()
	}
	return l.listener.handshake
}

// listen creates a socket with a random name.
func (l *Lender) listen() *channelListener {
	cl := &channelListener{lender: l, secret: make([]byte, secretSize), conns: map[*net.UnixConn]struct{}{}}
	name := make([]byte, 16)
	_, _ = rand.Read(name) // never fails
	_, _ = rand.Read(cl.secret)
	r := reply{socket: socketPrefix + hex.EncodeToString(name), secret: cl.secret, acceptsBatches: true}
	var err error
	if cl.socket, err = net.ListenUnix("unix", &net.UnixAddr{Name: r.socket, Net: "unix"}); err != nil {
		l.log.Debug("cannot listen for channels; large tensors are sent as bytes", "error", err)
		return cl
	}
	cl.handshake = r.encode()
	cl.connections.Go(cl.accept)
	return cl
}

// FetchLeased answers a request for a leased tensor that could not be read. It returns neither a
// response nor an error for any other request.
func (l *Lender) FetchLeased(req *message.RecvTensorRequest) (*message.RecvTensorResponse, error) {
	if err := failpoint.Hit("samehost/fetch-leased"); err != nil {
		return nil, err
	}
	if req.Transport == nil {
		return nil, nil //nolint:nilnil // see above
	}
	o, ok := decodeOffer(req.Transport)
	if !ok || o.fetch == 0 {
		return nil, nil //nolint:nilnil // see above
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.leases[o.fetch]
	if n == nil || n.stepEnded || n.step != req.StepID || n.channel != o.channel {
		return nil, status.Abortedf("The lease of tensor %s has ended.", req.Key).Derive()
	}
	t := n.tensor.Retain()
	l.endLeaseLocked(o.fetch, n)
	return &message.RecvTensorResponse{Tensor: t}, nil
}

// EndStep ends the leases of a step. A tensor that is being written to a pipe is kept until the
// borrower has it.
func (l *Lender) EndStep(step int64) {
	if l.leasedBytes.Load() == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, n := range l.leases {
		switch {
		case n.step != step:
		case n.inPipe:
			n.stepEnded = true
		default:
			l.endLeaseLocked(id, n)
		}
	}
}

// endLeaseLocked ends a lease. A borrower that is still reading notices it by the lease ID.
func (l *Lender) endLeaseLocked(id uint64, n *lease) {
	delete(l.leases, id)
	n.leaveSlot()
	l.leasedBytes.Add(-int64(len(n.tensor.Bytes())))
	n.idWord.Store(0)
	n.tensor.Release()
}

// release ends a lease that its borrower has returned over a channel.
func (l *Lender) release(channel, id uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := l.leases[id]; n != nil && n.channel == channel {
		l.endLeaseLocked(id, n)
	}
}

// LeasedBytes returns the size of all leased tensors.
func (l *Lender) LeasedBytes() int64 {
	l.sweep()
	return l.leasedBytes.Load()
}

// LentBytes returns the size of all tensors that have been leased since the start.
func (l *Lender) LentBytes() int64 { return l.lentBytes.Load() }

// LeaseCount returns the number of tensors that have been leased since the start.
func (l *Lender) LeaseCount() int64 { return l.leaseCount.Load() }

// Close closes all channels, ends all leases, and waits for the goroutines of the channels.
func (l *Lender) Close() {
	l.mu.Lock()
	l.closed = true
	cl := l.listener
	l.mu.Unlock()
	if cl != nil {
		cl.close()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, n := range l.leases {
		l.endLeaseLocked(id, n)
	}
}
