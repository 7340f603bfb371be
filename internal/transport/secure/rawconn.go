package secure

import (
	"encoding/binary"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

const (
	recordHeader = 5 // bytes
	// firstBuffer and lastBuffer are the sizes of the buffer for reading, in bytes. It grows while
	// reads fill it. The largest holds several records, so that a large tensor needs fewer system
	// calls.
	firstBuffer = 4 << 10
	lastBuffer  = 128 << 10
	// corkLimit is the number of bytes that are written with one system call.
	corkLimit = 128 << 10
	// goodbye bounds the write of the alert that closes a connection.
	goodbye = 50 * time.Millisecond
)

// ErrPlaintext is the error of a server whose client speaks HTTP/2 without TLS.
var ErrPlaintext = errors.New("the client speaks HTTP/2 without TLS")

// rawConn is the connection below TLS. It buffers whole records, for two reasons. crypto/tls reads
// and writes each record with system calls of its own. And it does not show what it has read beyond
// a record, so that a reader could not tell whether waiting for the socket is of use.
type rawConn struct {
	net.Conn
	server  bool
	closing atomic.Bool

	// owned by the reader
	buf        []byte
	start, end int
	left       int  // bytes of the record that have not been returned
	begun      bool // the first bytes have been looked at

	mu     sync.Mutex
	corked bool   // writes are collected; guarded by mu
	out    []byte // guarded by mu
}

// Read implements net.Conn. It never returns bytes of two records.
func (r *rawConn) Read(p []byte) (int, error) {
	for r.left == 0 && r.end-r.start < recordHeader || r.start == r.end {
		if err := r.fill(); err != nil {
			return 0, err
		}
		if r.server && !r.begun {
			if r.begun = true; r.buf[r.start] == 'P' { // of the preface of HTTP/2
				return 0, ErrPlaintext
			}
		}
	}
	if r.left == 0 {
		r.left = recordHeader + int(binary.BigEndian.Uint16(r.buf[r.start+3:]))
	}
	n := copy(p, r.buf[r.start:min(r.end, r.start+r.left)])
	r.start += n
	r.left -= n
	return n, nil
}

// fill reads at least one byte.
func (r *rawConn) fill() error {
	switch {
	case r.buf == nil:
		r.buf = make([]byte, firstBuffer)
	case r.start == r.end:
		if r.end == len(r.buf) && len(r.buf) < lastBuffer {
			r.buf = make([]byte, 2*len(r.buf))
		}
		r.start, r.end = 0, 0
	default:
		r.end = copy(r.buf, r.buf[r.start:r.end])
		r.start = 0
	}
	n, err := r.Conn.Read(r.buf[r.end:])
	r.end += n
	if n > 0 {
		return nil
	}
	return err
}

// cork makes Write collect bytes, until uncork.
func (r *rawConn) cork() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.corked = true
}

func (r *rawConn) uncork() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.corked = false
	return r.flushLocked()
}

func (r *rawConn) flushLocked() error {
	if len(r.out) == 0 {
		return nil
	}
	_, err := r.Conn.Write(r.out)
	r.out = r.out[:0]
	return err
}

// Write implements net.Conn.
func (r *rawConn) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.corked {
		return r.Conn.Write(p)
	}
	r.out = append(r.out, p...)
	if len(r.out) < corkLimit {
		return len(p), nil
	}
	if err := r.flushLocked(); err != nil {
		return 0, err
	}
	return len(p), nil
}

// SetWriteDeadline implements net.Conn. crypto/tls allows five seconds for the last alert.
func (r *rawConn) SetWriteDeadline(t time.Time) error {
	if soon := time.Now().Add(goodbye); r.closing.Load() && (t.IsZero() || t.After(soon)) {
		t = soon
	}
	return r.Conn.SetWriteDeadline(t)
}
