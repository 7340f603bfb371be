package grpch2

import (
	"errors"
	"io"
	"net"
	"os"
	"time"

	"github.com/weft-ml/weft/internal/sys/mono"
)

// inputBuffer holds the small frames of one read. Larger payloads go past it.
const inputBuffer = 16 << 10

// input reads a connection.
type input struct {
	r          source
	buf        []byte
	start, end int // what of buf has been read from the connection and not been taken yet
}

func newInput(r net.Conn) input {
	in := input{r: source{Conn: r}, buf: make([]byte, inputBuffer)}
	in.r.lookout.init(r)
	return in
}

// source is a connection that is read. A deadline in the past interrupts whoever reads it, but not
// within a frame.
type source struct {
	net.Conn
	within  bool
	lookout lookout
}

func (s *source) Read(b []byte) (int, error) {
	if s.within {
		return s.readOn(b)
	}
	start := mono.Nanos()
	s.lookout.await()
	n, err := s.Conn.Read(b)
	s.lookout.came(mono.Nanos() - start)
	return n, err
}

// readOn reads on within a frame.
func (s *source) readOn(b []byte) (int, error) {
	for {
		n, err := s.Conn.Read(b)
		if n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
		if err := s.Conn.SetReadDeadline(time.Time{}); err != nil {
			return 0, err
		}
	}
}

// need makes the next n bytes lie in buf, which must be able to hold them.
func (in *input) need(n int) error {
	if in.end-in.start >= n {
		return nil
	}
	if in.start == in.end {
		in.start, in.end = 0, 0
	} else if in.start+n > len(in.buf) {
		in.end = copy(in.buf, in.buf[in.start:in.end])
		in.start = 0
	}
	k, err := io.ReadAtLeast(&in.r, in.buf[in.end:], n-(in.end-in.start))
	in.end += k
	return err
}

// take returns the next n bytes, which stay valid until the next call. n is bounded by the caller.
func (in *input) take(n int) ([]byte, error) {
	if n > len(in.buf) {
		b := make([]byte, n)
		return b, in.read(b)
	}
	if err := in.need(n); err != nil {
		return nil, err
	}
	in.start += n
	return in.buf[in.start-n : in.start], nil
}

// read fills dst. Many bytes come straight from the connection.
func (in *input) read(dst []byte) error {
	for len(dst) > 0 {
		if in.start == in.end && len(dst) >= len(in.buf)/2 {
			_, err := io.ReadFull(&in.r, dst)
			return err
		}
		if err := in.need(1); err != nil {
			return err
		}
		n := copy(dst, in.buf[in.start:in.end])
		in.start += n
		dst = dst[n:]
	}
	return nil
}

// skip passes over n bytes.
func (in *input) skip(n int) error {
	for n > 0 {
		if err := in.need(1); err != nil {
			return err
		}
		k := min(n, in.end-in.start)
		in.start += k
		n -= k
	}
	return nil
}

// hasRequest reports whether what has arrived has the end of a message in it, between whole frames.
func (in *input) hasRequest() bool {
	for b := in.buf[in.start:in.end]; len(b) >= frameHeaderSize; {
		h := parseFrameHeader(b)
		if len(b)-frameHeaderSize < h.length {
			return false
		}
		if (h.kind == frameData || h.kind == frameHeaders) && h.has(flagEndStream) {
			return true
		}
		b = b[frameHeaderSize+h.length:]
	}
	return false
}

// buffered reports whether there is something to read that has arrived already.
func (in *input) buffered() bool { return in.start < in.end }
