package h2

import (
	"io"
)

// inputBuffer holds the small frames of one read. Larger payloads go past it.
const inputBuffer = 16 << 10

// input reads a connection.
type input struct {
	r          io.Reader
	buf        []byte
	start, end int // what of buf has been read from the connection and not been taken yet
}

func newInput(r io.Reader) input { return input{r: r, buf: make([]byte, inputBuffer)} }

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
	k, err := io.ReadAtLeast(in.r, in.buf[in.end:], n-(in.end-in.start))
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
			_, err := io.ReadFull(in.r, dst)
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

// buffered reports whether there is something to read that has arrived already.
func (in *input) buffered() bool { return in.start < in.end }
