package stringops

// together is how many bytes of text are collected before they become strings: what one string that
// outlives the others keeps with it.
const together = 4 << 10

// builder makes many strings, in order, of which several share one piece of memory. The bytes of
// the next string are added to buf, and next ends it; flush comes last.
type builder struct {
	buf  []byte
	ends []int // in buf
	dst  []string
}

// newBuilder makes the strings dst.
func newBuilder(dst []string) *builder {
	n := min(len(dst), together/8)
	return &builder{dst: dst, buf: make([]byte, 0, 10*n), ends: make([]int, 0, n)}
}

// next ends a string.
func (b *builder) next() {
	b.ends = append(b.ends, len(b.buf))
	if len(b.buf) >= together {
		b.flush()
	}
}

// flush makes strings of what was collected.
func (b *builder) flush() {
	all, lo := string(b.buf), 0
	for i, hi := range b.ends {
		b.dst[i], lo = all[lo:hi], hi
	}
	b.dst = b.dst[len(b.ends):]
	b.buf, b.ends = b.buf[:0], b.ends[:0]
}
