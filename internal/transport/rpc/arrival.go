package rpc

import (
	"encoding/binary"

	"github.com/weft-ml/weft/internal/transport/grpch2"
	"github.com/weft-ml/weft/tensor"
)

const (
	// minPlaced is the size from which elements are read from the network straight into the memory
	// of their tensor.
	minPlaced = 64 << 10
	// headSize is read at a time where the next tensor is looked for. What it holds of the tensor
	// is copied.
	headSize = 2 << 10
	// maxPromised bounds the memory of all tensors that peers have announced and not sent yet.
	// Beyond it, memory grows with what comes.
	maxPromised = 4 << 30
)

// tensorPath are the fields that lead to the elements of the tensors of a message, from the
// outermost.
type tensorPath []uint64

// Where the tensors are in requests and responses.
var (
	requestTensors = map[string]tensorPath{
		MethodRunStep: {2, 2, 4}, MethodRunCallable: {3, 4}, MethodRunGraph: {3, 2, 4},
	}
	responseTensors = map[string]tensorPath{
		MethodRunStep: {1, 2, 4}, MethodRunCallable: {1, 4}, MethodRunGraph: {1, 2, 4}, MethodRecvTensor: {1, 4},
	}
)

// An arrival is the memory of a message that is being received. It looks through the message as it
// comes, and where a large tensor begins, goes on with the memory of that tensor. What it does not
// understand it leaves to whoever decodes the message.
type arrival struct {
	path    tensorPath
	data    [][]byte        // the message, in pieces
	placed  []tensor.Tensor // whose memory some of the pieces are
	room    []byte          // for the next bytes; the end of the last piece
	left    int             // bytes that have no room yet
	have    int             // bytes that have come
	owed    int             // bytes that the last of placed misses
	limiter *ReceiveLimiter
	grant   *grant // share of the limiter's window; nil for none

	looking bool
	at      int   // how far it has looked
	skip    int   // bytes to pass over from there
	ends    []int // of the message and the fields around, from the outermost
}

// arriving returns the memory for a message of n bytes whose tensors are found by path.
func (l *ReceiveLimiter) arriving(path tensorPath, n int) *arrival {
	a := &arrival{path: path, left: n, limiter: l}
	if path != nil && n >= minPlaced {
		a.looking = true
		a.ends = append(make([]int, 0, len(path)), n)
	}
	return a
}

// rooms returns the function that makes room for messages whose tensors are found by path.
func (l *ReceiveLimiter) rooms(path tensorPath) func(size int) grpch2.Body {
	return func(size int) grpch2.Body { return l.arriving(path, size) }
}

// Room implements [grpch2.Body].
func (a *arrival) Buffer() []byte {
	if len(a.room) == 0 && a.left > 0 {
		n := max(a.have, minPlaced)
		switch {
		case a.looking && a.skip > 0:
			n = min(n, a.skip)
		case a.looking:
			n = headSize
		}
		a.room = make([]byte, min(n, a.left))
		a.data = append(a.data, a.room)
		a.left -= len(a.room)
	}
	return a.room
}

// Filled implements [grpch2.Body].
func (a *arrival) Advance(n int) {
	a.room = a.room[n:]
	a.have += n
	switch {
	case a.owed > 0:
		a.owed -= n
		a.limiter.announced.Add(int64(-n))
	case a.looking && len(a.room) == 0:
		a.looking = a.look(a.data[len(a.data)-1])
	}
}

// Discard implements [grpch2.Body].
func (a *arrival) Discard() {
	a.limiter.announced.Add(int64(-a.owed))
	a.owed = 0
	a.release()
	a.leave()
}

// enter waits until the window of all arrivals has room for a tensor. A message that has some of it
// waits no more.
func (a *arrival) enter(size int) {
	if a.grant == nil {
		a.grant = a.limiter.acquire(int64(size))
	} else {
		a.limiter.extend(a.grant, int64(size))
	}
}

// leave says that the message no longer holds what has arrived.
func (a *arrival) leave() {
	if a.grant != nil {
		a.limiter.release(a.grant)
		a.grant = nil
	}
}

// release gives up the tensors that no message has taken.
func (a *arrival) release() {
	for i := range a.placed {
		a.placed[i].Release()
	}
}

// look looks through the piece that has just come, and reports whether to go on with the next.
func (a *arrival) look(piece []byte) bool {
	for {
		n := min(a.skip, len(piece))
		piece = piece[n:]
		a.at += n
		if a.skip -= n; a.skip > 0 {
			return true
		}
		for len(a.ends) > 1 && a.at == a.ends[len(a.ends)-1] {
			a.ends = a.ends[:len(a.ends)-1]
		}
		if len(piece) == 0 {
			return true
		}
		key, value, n := field(piece)
		if n == 0 {
			return false
		}
		piece = piece[n:]
		a.at += n
		if value > a.ends[len(a.ends)-1]-a.at {
			return false
		}
		if key != a.path[len(a.ends)-1]<<3|lengthDelimited {
			a.skip = value
			continue
		}
		switch {
		case len(a.ends) < len(a.path):
			a.ends = append(a.ends, a.at+value)
		case value < minPlaced || value <= len(piece):
			a.skip = value
		default:
			return a.place(len(piece), value)
		}
	}
}

// field reads the head of a field: its key, how many bytes of value follow, and how many bytes the
// head is; 0 if it is not whole or not well formed. A number counts as a head alone.
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
		if m <= 0 || v > maxPromised {
			return 0, 0, 0
		}
		return key, int(v), n + m
	}
	return 0, 0, 0
}

// place makes the memory of a tensor the room for its elements, of which the first have come at the
// end of the last piece.
func (a *arrival) place(come, size int) bool {
	a.enter(size)
	owed := size - come
	if a.limiter.announced.Add(int64(owed)) > maxPromised {
		a.limiter.announced.Add(int64(-owed))
		return false
	}
	t, err := tensor.Alloc(tensor.Uint8, tensor.Shape{int64(size)})
	if err != nil { // which the decoder finds out again
		a.limiter.announced.Add(int64(-owed))
		return false
	}
	last := &a.data[len(a.data)-1]
	elements := t.Bytes()
	copy(elements, (*last)[len(*last)-come:])
	*last = (*last)[:len(*last)-come]
	a.data = append(a.data, elements)
	a.placed = append(a.placed, t)
	a.room, a.owed = elements[come:], owed
	a.left -= owed
	a.at += size
	return true
}

// take returns the tensor whose memory starts with the rest of a message, if there is one.
func take(placed []tensor.Tensor, elements []byte) (t tensor.Tensor, ok bool) {
	for i := range placed {
		if b := placed[i].Bytes(); len(b) > 0 && &b[0] == &elements[0] && len(b) == len(elements) {
			t, placed[i] = placed[i], tensor.Tensor{}
			return t, true
		}
	}
	return tensor.Tensor{}, false
}
