package rpc

import (
	"encoding/binary"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/internal/transport/grpch2"
	"github.com/weft-ml/weft/tensor"
)

const (
	// minPlaced is the size, in bytes, from which elements are received directly into the memory of
	// their tensor.
	minPlaced = 64 << 10
	// scanSize is the size of a piece while the buffer looks for the next tensor. The elements in
	// such a piece are copied.
	scanSize = 2 << 10
	// maxAnnounced bounds the memory of the tensors that peers have announced and not yet sent.
	// Beyond it, memory grows with the received bytes.
	maxAnnounced = 4 << 30
)

// tensorPath is the sequence of field numbers that lead to the elements of the tensors of a
// message, from the outermost field.
type tensorPath []uint64

// Paths of the tensors in requests and responses.
var (
	requestTensors = map[string]tensorPath{
		MethodRunStep: {2, 2, 4}, MethodRunCallable: {3, 4}, MethodRunGraph: {3, 2, 4},
	}
	responseTensors = map[string]tensorPath{
		MethodRunStep: {1, 2, 4}, MethodRunCallable: {1, 4}, MethodRunGraph: {1, 2, 4}, MethodRecvTensor: {1, 4},
	}
)

// A receiveBuffer is the memory of a message that is being received. It implements [grpch2.Body].
//
// The simple design receives a message into a buffer and copies the elements when it decodes the
// message, so a large tensor is in memory twice. A receiveBuffer instead scans the fields of the
// message as they arrive. Where a large tensor begins, it continues with the memory of that tensor,
// which the decoder then takes over.
//
// The scan need not understand every message: it stops at the first field that it cannot read, and
// the decoder reports the error. While it scans, pieces are small, so that few elements are copied.
type receiveBuffer struct {
	path     tensorPath
	data     [][]byte        // pieces of the message
	placed   []tensor.Tensor // tensors whose memory is among the pieces
	free     []byte          // memory for the next bytes: the end of the last piece
	left     int             // bytes of the message without memory
	received int             // bytes received
	missing  int             // bytes of the last placed tensor that have not arrived
	limiter  *ReceiveLimiter
	grant    *grant // share of the limiter's window; nil for none
	charged  int    // bytes of pieces that count in limiter.reading
	refused  bool   // there is no memory for the message; its rest is dropped
	held     func() // gives the memory back that decoding has asked for; nil for none

	scanning bool
	at       int   // number of scanned bytes
	skip     int   // number of bytes to skip next
	ends     []int // ends of the message and of the enclosing fields, from the outermost
}

// newBuffer returns a buffer for a message of n bytes whose tensors are at path.
func (l *ReceiveLimiter) newBuffer(path tensorPath, n int) *receiveBuffer {
	rb := &receiveBuffer{path: path, left: n, limiter: l}
	if path != nil && n >= minPlaced {
		rb.scanning = true
		rb.ends = append(make([]int, 0, len(path)), n)
	}
	return rb
}

// newBody returns a function that creates buffers for messages whose tensors are at path.
func (l *ReceiveLimiter) newBody(path tensorPath) func(size int) grpch2.Body {
	return func(size int) grpch2.Body { return l.newBuffer(path, size) }
}

// Buffer implements [grpch2.Body].
func (rb *receiveBuffer) Buffer() []byte {
	if len(rb.free) == 0 && rb.left > 0 {
		n := max(rb.received, minPlaced)
		switch {
		case rb.scanning && rb.skip > 0:
			n = min(n, rb.skip)
		case rb.scanning:
			n = scanSize
		}
		rb.add(min(n, rb.left))
	}
	return rb.free
}

// add adds a piece of n bytes. If there is no memory for it, the rest of the message is received
// into one small piece, over and over.
func (rb *receiveBuffer) add(n int) {
	if rb.refused || n >= minPlaced && !rb.charge(n) {
		rb.refuse()
		rb.free = rb.data[0][:min(rb.left, len(rb.data[0]))]
		rb.left -= len(rb.free)
		return
	}
	rb.free = make([]byte, n)
	rb.data = append(rb.data, rb.free)
	rb.left -= n
}

// charge asks for the memory of a piece. Messages that are being received may take half of the
// memory of the process, so that peers that do not finish their messages leave some to the others.
func (rb *receiveBuffer) charge(n int) bool {
	reading := rb.limiter.reading.Add(int64(n))
	rb.charged += n
	limit := membudget.Limit()
	return limit == 0 || reading <= limit/2 && membudget.Take(int64(n))
}

// refuse drops what has been received.
func (rb *receiveBuffer) refuse() {
	if rb.refused {
		return
	}
	rb.refused, rb.scanning = true, false
	rb.uncharge()
	rb.release()
	rb.placed = nil
	rb.data = [][]byte{make([]byte, minPlaced)}
}

// uncharge ends the charge of the pieces.
func (rb *receiveBuffer) uncharge() {
	rb.limiter.reading.Add(int64(-rb.charged))
	rb.charged = 0
}

// Advance implements [grpch2.Body].
func (rb *receiveBuffer) Advance(n int) {
	rb.free = rb.free[n:]
	rb.received += n
	switch {
	case rb.missing > 0:
		rb.missing -= n
		rb.limiter.announced.Add(int64(-n))
	case rb.scanning && len(rb.free) == 0:
		rb.scanning = rb.scan(rb.data[len(rb.data)-1])
	}
}

// Discard implements [grpch2.Body].
func (rb *receiveBuffer) Discard() {
	rb.limiter.announced.Add(int64(-rb.missing))
	rb.missing = 0
	rb.release()
	rb.releaseGrant()
}

// finish gives back what the message holds while its call is served.
func (rb *receiveBuffer) finish() {
	rb.releaseGrant()
	if rb.held != nil {
		rb.held()
		rb.held = nil
	}
}

// acquire waits until the limiter admits a tensor. A message that has a grant does not wait again.
func (rb *receiveBuffer) acquire(size int) {
	if rb.grant == nil {
		rb.grant = rb.limiter.acquire(int64(size))
	} else {
		rb.limiter.extend(rb.grant, int64(size))
	}
}

// releaseGrant gives the grant of the message back.
func (rb *receiveBuffer) releaseGrant() {
	if rb.grant != nil {
		rb.limiter.release(rb.grant)
		rb.grant = nil
	}
}

// release releases the tensors that no message has taken over.
func (rb *receiveBuffer) release() {
	rb.uncharge()
	for i := range rb.placed {
		rb.placed[i].Release()
	}
}

// scan scans the piece that has just been filled, and reports whether to scan the next one.
func (rb *receiveBuffer) scan(piece []byte) bool {
	for {
		n := min(rb.skip, len(piece))
		piece = piece[n:]
		rb.at += n
		if rb.skip -= n; rb.skip > 0 {
			return true
		}
		for len(rb.ends) > 1 && rb.at == rb.ends[len(rb.ends)-1] {
			rb.ends = rb.ends[:len(rb.ends)-1]
		}
		if len(piece) == 0 {
			return true
		}
		key, value, n := field(piece)
		if n == 0 {
			return false
		}
		piece = piece[n:]
		rb.at += n
		if value > rb.ends[len(rb.ends)-1]-rb.at {
			return false
		}
		if key != rb.path[len(rb.ends)-1]<<3|lengthDelimited {
			rb.skip = value
			continue
		}
		switch {
		case len(rb.ends) < len(rb.path):
			rb.ends = append(rb.ends, rb.at+value)
		case value < minPlaced || value <= len(piece):
			rb.skip = value
		default:
			return rb.place(len(piece), value)
		}
	}
}

// field reads the head of a field: its key, the number of bytes of its value that follow, and the
// size of the head. The size is 0 if the head is incomplete or malformed. A varint counts as part
// of the head.
func field(b []byte) (key uint64, value, head int) {
	key, n := binary.Uvarint(b)
	if n <= 0 {
		return 0, 0, 0
	}
	switch key & 7 {
	case fixed64:
		return key, 8, n
	case fixed32:
		return key, 4, n
	case varint, lengthDelimited:
		v, m := binary.Uvarint(b[n:])
		if key&7 == varint {
			v = 0
		}
		if m <= 0 || v > maxAnnounced {
			return 0, 0, 0
		}
		return key, int(v), n + m
	}
	return 0, 0, 0
}

// place continues with the memory of a tensor of size bytes. Its first bytes, already received, are
// the end of the last piece.
func (rb *receiveBuffer) place(received, size int) bool {
	rb.acquire(size)
	missing := size - received
	if rb.limiter.announced.Add(int64(missing)) > maxAnnounced {
		rb.limiter.announced.Add(int64(-missing))
		return false
	}
	t, err := tensor.Alloc(tensor.Uint8, tensor.Shape{int64(size)})
	if err != nil { // the decoder reports it
		rb.limiter.announced.Add(int64(-missing))
		return false
	}
	last := &rb.data[len(rb.data)-1]
	elements := t.Bytes()
	copy(elements, (*last)[len(*last)-received:])
	*last = (*last)[:len(*last)-received]
	rb.data = append(rb.data, elements)
	rb.placed = append(rb.placed, t)
	rb.free, rb.missing = elements[received:], missing
	rb.left -= missing
	rb.at += size
	return true
}

// takePlaced returns the placed tensor whose memory is elements, if there is one.
func takePlaced(placed []tensor.Tensor, elements []byte) (t tensor.Tensor, ok bool) {
	for i := range placed {
		if b := placed[i].Bytes(); len(b) > 0 && &b[0] == &elements[0] && len(b) == len(elements) {
			t, placed[i] = placed[i], tensor.Tensor{}
			return t, true
		}
	}
	return tensor.Tensor{}, false
}
