package grpch2

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"
)

// incoming is the message that arrives on a stream.
type incoming struct {
	prefix     [prefixSize]byte
	have       int // of prefix
	body       Body
	left       int // of the message
	compressed bool

	use atomic.Uint32 // who may touch the rest: the reader, between its frames nobody
}

// Uses of an incoming message.
const (
	unused uint32 = iota
	reading
	abandoned // nobody wants it
)

// callError is a fault of one call.
type callError struct {
	code   uint32
	text   string
	unread int // bytes of the frame that nobody has read
}

func (e *callError) Error() string { return e.text }

// read takes n bytes of data. Whoever called may give up meanwhile.
func (m *incoming) read(in *input, n int, room func(int) Body) error {
	if !m.use.CompareAndSwap(unused, reading) {
		return in.skip(n)
	}
	err := m.fill(in, n, room)
	if !m.use.CompareAndSwap(reading, unused) {
		m.discard()
	}
	return err
}

func (m *incoming) fill(in *input, n int, room func(int) Body) error {
	for n > 0 {
		switch {
		case m.have < prefixSize:
			k := min(n, prefixSize-m.have)
			if err := in.read(m.prefix[m.have : m.have+k]); err != nil {
				return err
			}
			m.have += k
			n -= k
			if m.have == prefixSize {
				if bad := m.begin(room); bad != nil {
					bad.unread = n
					return bad
				}
			}
		case m.left == 0:
			return &callError{codeInternalError, "a call has more than one message", n}
		default:
			dst := m.body.Buffer()
			dst = dst[:min(len(dst), n, m.left)]
			if err := in.read(dst); err != nil {
				return err
			}
			m.body.Advance(len(dst))
			n -= len(dst)
			m.left -= len(dst)
		}
	}
	return nil
}

// begin makes room for a message after its prefix has been read.
func (m *incoming) begin(room func(int) Body) *callError {
	length := binary.BigEndian.Uint32(m.prefix[1:])
	if length > maxMessage {
		return &callError{code: codeResourceExhausted, text: fmt.Sprintf("Received message larger than max (%d vs. %d)", length, maxMessage)}
	}
	if m.prefix[0] > compressFlag {
		return &callError{code: codeInternalError, text: "a message has unknown flags"}
	}
	m.compressed, m.left = m.prefix[0] == compressFlag, int(length)
	if m.compressed {
		m.body = NewChunks(m.left)
	} else {
		m.body = room(m.left)
	}
	return nil
}

// complete reports whether a whole message is there.
func (m *incoming) complete() bool { return m.body != nil && m.left == 0 }

// abandon gives up what is there, and all that comes. Any goroutine may do so.
func (m *incoming) abandon() {
	if m.use.Swap(abandoned) == unused {
		m.discard()
	}
}

func (m *incoming) discard() {
	if m.body != nil {
		m.body.Discard()
	}
	m.body = nil
}

// take passes the message on, and reports false if it has been given up. The reader calls it when
// the stream is over.
func (m *incoming) take() (Body, bool) {
	if !m.use.CompareAndSwap(unused, abandoned) {
		return nil, false
	}
	body := m.body
	m.body = nil
	return body, true
}
