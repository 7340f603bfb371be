package grpch2

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/weft-ml/weft/internal/sys/mono"
)

// inputBuffer is the size of the buffer for small frames, in bytes. Larger payloads are read into
// their destination.
const inputBuffer = 16 << 10

// input is the buffered reading side of a connection.
type input struct {
	r          source
	buf        []byte
	start, end int // bounds of the bytes in buf that were read and not yet taken
}

func newInput(r net.Conn) *input {
	in := &input{r: source{Conn: r}, buf: make([]byte, inputBuffer)}
	in.r.secure, _ = r.(SecureConn)
	in.r.poller.init(r)
	return in
}

// source is a connection that is read. A read deadline in the past interrupts the reader between
// two frames (see clientConn.interruptReader), but not within a frame.
type source struct {
	net.Conn
	inFrame bool // a frame header has been read, and its payload has not
	// a read deadline also ends a read within a frame: the peer is late with its handshake
	strict bool
	secure SecureConn // the connection, if it is one; otherwise nil
	poller spinPoller
	making making
	reads  atomic.Uint32 // reads that returned data
}

func (s *source) Read(b []byte) (int, error) {
	if s.inFrame {
		return s.readInFrame(b)
	}
	start := mono.Nanos()
	if s.secure == nil || !s.secure.Buffered() { // otherwise the socket may stay silent
		s.poller.spin()
	}
	n, err := s.Conn.Read(b)
	if n > 0 {
		s.reads.Add(1)
	}
	s.poller.record(mono.Nanos() - start)
	return n, err
}

// readInFrame reads within a frame, where interruptions are ignored.
func (s *source) readInFrame(b []byte) (int, error) {
	s.making.begin()
	for {
		n, err := s.Conn.Read(b)
		if n > 0 {
			s.making.arrived()
			s.reads.Add(1)
		}
		if n > 0 || s.strict || !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
		if err := s.Conn.SetReadDeadline(time.Time{}); err != nil {
			return 0, err
		}
	}
}

// fill reads until buf has n bytes, at most its capacity.
func (in *input) fill(n int) error {
	if in.end-in.start >= n {
		return nil
	}
	if in.start == in.end {
		in.start, in.end = 0, 0
	} else if in.start+n > len(in.buf) {
		in.end = copy(in.buf, in.buf[in.start:in.end])
		in.start = 0
	}
	for in.end-in.start < n {
		partial := in.end > in.start
		if partial {
			in.r.making.begin()
		}
		k, err := in.r.Read(in.buf[in.end:])
		in.end += k
		switch {
		case in.end-in.start >= n:
			return nil
		case err == io.EOF && (partial || k > 0): //nolint:errorlint // readers return io.EOF itself
			return io.ErrUnexpectedEOF
		case err != nil:
			return err
		}
	}
	return nil
}

// next returns the next n bytes, which are valid until the next call of a method. The caller bounds
// n.
func (in *input) next(n int) ([]byte, error) {
	if n > len(in.buf) {
		b := make([]byte, n)
		return b, in.read(b)
	}
	if err := in.fill(n); err != nil {
		return nil, err
	}
	in.start += n
	return in.buf[in.start-n : in.start], nil
}

// read fills dst. Large destinations bypass the buffer.
func (in *input) read(dst []byte) error {
	for len(dst) > 0 {
		if in.start == in.end && len(dst) >= len(in.buf)/2 {
			_, err := io.ReadFull(&in.r, dst)
			return err
		}
		if err := in.fill(1); err != nil {
			return err
		}
		n := copy(dst, in.buf[in.start:in.end])
		in.start += n
		dst = dst[n:]
	}
	return nil
}

// skip discards n bytes.
func (in *input) skip(n int) error {
	for n > 0 {
		if err := in.fill(1); err != nil {
			return err
		}
		k := min(n, in.end-in.start)
		in.start += k
		n -= k
	}
	return nil
}

// nextEnds reports whether the buffer starts with the frame that ends a stream, without data.
func (in *input) nextEnds(id uint32) bool {
	b := in.buf[in.start:in.end]
	if len(b) < frameHeaderSize {
		return false
	}
	h := parseFrameHeader(b)
	if h.stream != id || !h.has(flagEndStream) || len(b)-frameHeaderSize < h.length {
		return false
	}
	return h.kind == frameHeaders && h.has(flagEndHeaders) || h.kind == frameData && h.length == 0
}

// hasCompleteMessage reports whether the buffer, which starts with a whole frame, contains the last
// frame of a message: a frame that ends its stream, or that holds a whole message.
func (in *input) hasCompleteMessage() bool {
	for b := in.buf[in.start:in.end]; len(b) >= frameHeaderSize; {
		h := parseFrameHeader(b)
		if len(b)-frameHeaderSize < h.length {
			return false
		}
		if (h.kind == frameData || h.kind == frameHeaders) && h.has(flagEndStream) {
			return true
		}
		if payload := b[frameHeaderSize:][:h.length]; h.kind == frameData && isWholeMessage(payload) {
			return true
		}
		b = b[frameHeaderSize+h.length:]
	}
	return false
}

// isWholeMessage reports whether bytes look like a message with its prefix. Bytes from within a
// message may look so, too.
func isWholeMessage(b []byte) bool {
	return len(b) >= prefixSize && b[0] <= compressFlag && int(binary.BigEndian.Uint32(b[1:])) == len(b)-prefixSize
}

// buffered reports whether bytes can be taken without a read.
func (in *input) buffered() bool { return in.start < in.end }
