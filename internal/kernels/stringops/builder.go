package stringops

import (
	"strings"

	"github.com/weft-ml/weft/internal/sys/membudget"
)

// blockSize is the number of text bytes collected before they are converted to strings. It bounds
// the memory that one long-lived string keeps alive.
const blockSize = 4 << 10

// builder creates many strings, in order, and lets several share one allocation. The caller appends
// the bytes of a string to buf and then calls next; the last call is flush.
type builder struct {
	buf  []byte
	ends []int // end offsets in buf
	dst  []string

	meter membudget.Meter
}

// newBuilder returns a builder that writes to dst.
func newBuilder(dst []string) *builder {
	n := min(len(dst), blockSize/8)
	return &builder{dst: dst, buf: membudget.MakeCap[byte](10 * n), ends: membudget.MakeCap[int](n)}
}

// next ends a string.
func (b *builder) next() {
	b.ends = membudget.Append(b.ends, len(b.buf))
	if len(b.buf) >= blockSize {
		b.flush()
	}
}

// flush converts the collected bytes to strings.
func (b *builder) flush() {
	b.meter.MustTake(len(b.buf))
	all, lo := string(b.buf), 0
	for i, hi := range b.ends {
		b.dst[i], lo = all[lo:hi], hi
	}
	b.dst = b.dst[len(b.ends):]
	b.buf, b.ends = b.buf[:0], b.ends[:0]
}

// mapped adds a string with each byte replaced. It gets memory of its own.
func (b *builder) mapped(s string, table *[256]byte) {
	b.flush()
	b.meter.MustTake(len(s))
	var text strings.Builder
	text.Grow(len(s))
	for i := range len(s) {
		text.WriteByte(table[s[i]])
	}
	b.dst[0], b.dst = text.String(), b.dst[1:]
}

// joined adds a string of size bytes that is made of n parts with a separator. It gets memory of
// its own.
func (b *builder) joined(size int, separator string, n int, part func(int) string) {
	b.flush()
	b.meter.MustTake(size)
	var text strings.Builder
	text.Grow(size)
	for j := range n {
		if j > 0 {
			text.WriteString(separator)
		}
		text.WriteString(part(j))
	}
	b.dst[0], b.dst = text.String(), b.dst[1:]
}
