package rpc

import (
	"encoding/binary"
	"errors"
	"unicode/utf8"
	"unsafe"

	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/internal/opkit/protomem"
	"github.com/weft-ml/weft/internal/role/quota"
	"github.com/weft-ml/weft/internal/sys/membudget"
)

// Wire types of protocol buffers. A key is a field number above three bits of wire type.
const (
	varint          = 0
	fixed64         = 1
	lengthDelimited = 2
	fixed32         = 5
)

// errMalformed reports bytes that are not a protocol message.
var errMalformed = errors.New("malformed message")

// add appends a value to a list. It fails r if there is no memory for the list to grow, or if the
// list has more elements than a graph may have nodes: feeds, fetches and targets name nodes.
func add[T any](r *reader, list []T, v T) []T {
	if len(list) == cap(list) {
		if err := r.quota.Check(quota.Nodes, len(list)+1); err != nil {
			r.fail(err)
		}
		r.take(2 * cap(list) * int(unsafe.Sizeof(v)))
	}
	if r.err != nil {
		return list
	}
	return append(list, v)
}

// reader decodes a protocol message in several buffers. After the first error, every method returns
// zero values and more reports false.
type reader struct {
	cur  []byte   // rest of the current buffer
	next [][]byte // the buffers after it
	left int      // remaining bytes of the current message
	err  error

	meter membudget.Meter // of what was decoded
	quota *quota.Quota    // limits of graphs; nil for the default ones
}

// take counts n bytes of memory for what is being decoded, and fails if there are none.
func (r *reader) take(n int) {
	if !r.meter.Take(n) {
		r.fail(errNoMemory)
	}
}

func newReader(data [][]byte) reader {
	n := 0
	for _, b := range data {
		n += len(b)
	}
	return reader{next: data, left: n}
}

// more reports whether the message has another field.
func (r *reader) more() bool { return r.left > 0 && r.err == nil }

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
	r.cur, r.next, r.left = nil, nil, 0
}

// fill advances to the next buffer that is not empty; there must be one.
func (r *reader) fill() {
	for len(r.cur) == 0 {
		r.cur, r.next = r.next[0], r.next[1:]
	}
}

func (r *reader) uvarint() uint64 {
	if n := min(len(r.cur), r.left); n > 0 {
		if v, width := binary.Uvarint(r.cur[:n]); width > 0 {
			r.cur, r.left = r.cur[width:], r.left-width
			return v
		}
	}
	return r.splitUvarint()
}

// splitUvarint reads a number that may cross buffers.
func (r *reader) splitUvarint() uint64 {
	var buf [binary.MaxVarintLen64]byte
	for i := range buf {
		if r.left == 0 {
			break
		}
		r.fill()
		buf[i] = r.cur[0]
		r.cur, r.left = r.cur[1:], r.left-1
		if buf[i] < 0x80 {
			v, width := binary.Uvarint(buf[:i+1])
			if width <= 0 {
				break
			}
			return v
		}
	}
	r.fail(errMalformed)
	return 0
}

// key reads the key of a field.
func (r *reader) key() uint64 {
	key := r.uvarint()
	if key>>3 == 0 || key>>3 >= 1<<29 {
		r.fail(errMalformed)
	}
	return key
}

// length reads the length of a value and checks that the message is not shorter.
func (r *reader) length() int {
	n := r.uvarint()
	if n > uint64(r.left) {
		r.fail(errMalformed)
		return 0
	}
	return int(n)
}

// discard skips n bytes, which must be left.
func (r *reader) discard(n int) {
	r.left -= n
	for n > len(r.cur) {
		n -= len(r.cur)
		r.cur, r.next = r.next[0], r.next[1:]
	}
	r.cur = r.cur[n:]
}

// skip skips the value of an unknown field.
func (r *reader) skip(key uint64) {
	n := 0
	switch key & 7 {
	case varint:
		r.uvarint()
	case fixed64:
		n = 8
	case fixed32:
		n = 4
	case lengthDelimited:
		n = r.length()
	default: // groups, which TensorFlow's protocol does not use
		r.fail(errMalformed)
	}
	if n > r.left {
		r.fail(errMalformed)
		return
	}
	r.discard(n)
}

// copyTo fills dst, whose bytes must be left.
func (r *reader) copyTo(dst []byte) {
	r.left -= len(dst)
	for len(dst) > 0 {
		r.fill()
		n := copy(dst, r.cur)
		r.cur, dst = r.cur[n:], dst[n:]
	}
}

// rest returns the rest of the message in one piece. It shares memory with a buffer that contains
// all of it. It fails if there is no memory for a copy.
func (r *reader) rest() []byte {
	n := r.left
	if n > 0 {
		r.fill()
	}
	if n <= len(r.cur) {
		out := r.cur[:n:n]
		r.discard(n)
		return out
	}
	if n >= minCounted && !membudget.Take(int64(n)) {
		r.fail(errNoMemory)
		return nil
	}
	out := make([]byte, n)
	r.copyTo(out)
	return out
}

// enter starts a nested value, which ends when more is false. leave returns to the outer value.
func (r *reader) enter() (outer int) {
	n := r.length()
	outer = r.left - n
	r.left = n
	return outer
}

func (r *reader) leave(outer int) {
	if r.err != nil {
		return
	}
	r.discard(r.left)
	r.left = outer
}

// value returns a reader of the nested value alone, and skips it.
func (r *reader) value() reader {
	outer := r.enter()
	v := *r
	r.leave(outer)
	return v
}

// text reads a string, which must be UTF-8.
func (r *reader) text() string {
	outer := r.enter()
	b := r.rest()
	r.leave(outer)
	if !utf8.Valid(b) {
		r.fail(errMalformed)
		return ""
	}
	r.take(len(b) + protomem.Value)
	return string(b)
}

// maxNesting bounds the nesting of messages. TensorFlow's own limit, that of protocol buffers in
// C++, is the same.
const maxNesting = 100

// message decodes a message without tensors into m, merging it with the content of m, as the
// protocol requires for repeated occurrences.
func (r *reader) message(m proto.Message) {
	outer := r.enter()
	b := r.rest()
	r.leave(outer)
	held, err := admitMessage(m, b, r.quota)
	if err != nil {
		r.fail(err)
		return
	}
	defer held()
	if r.err == nil && (proto.UnmarshalOptions{Merge: true, RecursionLimit: maxNesting}).Unmarshal(b, m) != nil {
		r.fail(errMalformed)
	}
}

func (r *reader) bool() bool { return r.uvarint() != 0 }

func (r *reader) int64() int64 { return int64(r.uvarint()) }
