// Package httpbody reads the bodies of requests within the memory limit of the process.
//
// A buffer of package bytes doubles while it grows, and then takes three times what has arrived. So
// the memory of each step of growth is asked for before it is taken, and the steps get smaller
// where they are large. A client has to send a half of what its body takes.
package httpbody

import (
	"errors"
	"io"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
)

const (
	// firstSize is the memory for the beginning of a body, in bytes.
	firstSize = 4 << 10
	// doubled is the size in bytes up to which a buffer doubles. Beyond, it grows by a quarter.
	doubled = 64 << 20
)

// ErrTooLarge is the error for a body that is larger than its limit.
var ErrTooLarge = errors.New("the body is too large")

// Read reads a body of at most limit bytes; 0 is no limit. length is its size, or -1 if that is not
// known. The error is ErrTooLarge, one with the code ResourceExhausted, or that of r.
func Read(r io.Reader, length, limit int64) ([]byte, error) {
	if limit > 0 && length > limit {
		return nil, ErrTooLarge
	}
	var b []byte
	for {
		if len(b) == cap(b) {
			var err error
			if b, err = grown(b, length); err != nil {
				return nil, err
			}
		}
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		switch {
		case limit > 0 && int64(len(b)) > limit:
			return nil, ErrTooLarge
		case errors.Is(err, io.EOF):
			return b, nil
		case err != nil:
			return nil, err
		}
	}
}

// grown returns b with more room.
func grown(b []byte, length int64) ([]byte, error) {
	size := int64(cap(b))
	switch {
	case size == 0:
		size = firstSize
	case size < doubled:
		size *= 2
	default:
		size += size / 4
	}
	if whole := length + 1; size > whole && int64(cap(b)) < whole { // one byte more finds the end
		size = whole
	}
	var out []byte
	if !membudget.Reserve(size, func() { out = make([]byte, len(b), size) }) {
		return nil, status.ResourceExhaustedf("there is no memory for a request of %d bytes and more (--memory-limit)", len(b))
	}
	copy(out, b)
	return out, nil
}
