package grpch2

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"
)

// inboundMessage is the message that arrives on a stream.
//
// The reader fills it frame by frame, while the caller may abandon the call on another goroutine.
// The state arbitrates: the goroutine that changes it from idle may touch body, and abandon during
// a read leaves the disposal to the reader.
type inboundMessage struct {
	prefix     [prefixSize]byte
	prefixLen  int  // bytes of prefix that have arrived
	body       Body // nil before the prefix is complete, and after take and discard
	remaining  int  // bytes of the message that have not arrived
	compressed bool
	taken      bool // take has returned the message; guarded by the read token
	// receives the messages of a stream that has several; nil for other streams
	queue *requestQueue

	state atomic.Uint32 // one of the constants below; guards body
}

// States of an inbound message.
const (
	idle uint32 = iota
	reading
	discarded // the message was abandoned or taken; later data is skipped
)

// callError is an error that ends one call, not the connection.
type callError struct {
	code   uint32
	text   string
	unread int // bytes of the frame that were not read
}

func (e *callError) Error() string { return e.text }

const errSecondMessage = "a call has more than one message"

// read reads n bytes of data into the message. The caller of the message may abandon it at the same
// time.
func (m *inboundMessage) read(in *input, n int, o owner) error {
	if !m.state.CompareAndSwap(idle, reading) {
		return in.skip(n)
	}
	err := m.fill(in, n, o)
	if !m.state.CompareAndSwap(reading, idle) {
		m.discard()
	}
	return err
}

func (m *inboundMessage) fill(in *input, n int, o owner) error {
	for n > 0 {
		switch {
		case m.prefixLen < prefixSize:
			k := min(n, prefixSize-m.prefixLen)
			if err := in.read(m.prefix[m.prefixLen : m.prefixLen+k]); err != nil {
				return err
			}
			m.prefixLen += k
			n -= k
			if m.prefixLen == prefixSize {
				if bad := m.start(o); bad != nil {
					bad.unread = n
					return bad
				}
			}
		case m.remaining == 0:
			return &callError{codeInternalError, errSecondMessage, n}
		default:
			dst := m.body.Buffer()
			dst = dst[:min(len(dst), n, m.remaining)]
			if err := in.read(dst); err != nil {
				return err
			}
			m.body.Advance(len(dst))
			n -= len(dst)
			m.remaining -= len(dst)
		}
		if m.queue != nil && m.complete() {
			if bad := m.pass(); bad != nil {
				bad.unread = n
				return bad
			}
		}
	}
	return nil
}

// pass adds a complete message to the queue of the stream and prepares for the next one.
func (m *inboundMessage) pass() *callError {
	r := queuedRequest{m.body, m.compressed, prefixSize + int64(binary.BigEndian.Uint32(m.prefix[1:]))}
	m.body, m.prefixLen, m.compressed = nil, 0, false
	return m.queue.add(r)
}

// start obtains the memory for a message after its prefix has been read.
func (m *inboundMessage) start(o owner) *callError {
	length := binary.BigEndian.Uint32(m.prefix[1:])
	if length > maxMessage {
		return &callError{code: codeResourceExhausted, text: fmt.Sprintf("Received message larger than max (%d vs. %d)", length, maxMessage)}
	}
	if bad := o.checkSize(int(length)); bad != nil {
		return bad
	}
	if m.prefix[0] > compressFlag {
		return &callError{code: codeInternalError, text: "a message has unknown flags"}
	}
	m.compressed, m.remaining = m.prefix[0] == compressFlag, int(length)
	if m.compressed {
		m.body = NewChunks(m.remaining)
	} else {
		m.body = o.newBody(m.remaining)
	}
	return nil
}

// complete reports whether the whole message has arrived.
func (m *inboundMessage) complete() bool { return m.body != nil && m.remaining == 0 }

// abandon discards the message and all data that follows. It may be called on any goroutine.
func (m *inboundMessage) abandon() {
	if m.state.Swap(discarded) == idle {
		m.discard()
	}
}

func (m *inboundMessage) discard() {
	if m.body != nil {
		m.body.Discard()
	}
	m.body = nil
}

// take returns the message, and false if it was abandoned. The reader calls it when the message is
// complete.
func (m *inboundMessage) take() (Body, bool) {
	if !m.state.CompareAndSwap(idle, discarded) {
		return nil, false
	}
	m.taken = true
	body := m.body
	m.body = nil
	return body, true
}
