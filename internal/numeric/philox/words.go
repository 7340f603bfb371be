package philox

// Words reads a stream word by word. It must not be used concurrently.
type Words struct {
	gen  Generator
	out  [4]uint32
	next int
}

// NewWords returns a reader of the words from g on.
func NewWords(g Generator) *Words { return &Words{gen: g, next: 4} }

// Next returns the next word.
func (w *Words) Next() uint32 {
	if w.next == len(w.out) {
		w.out, w.next = w.gen.Next(), 0
	}
	v := w.out[w.next]
	w.next++
	return v
}

// Next64 returns the next two words as one number. The first word is the lower half.
func (w *Words) Next64() uint64 {
	low := uint64(w.Next())
	return uint64(w.Next())<<32 | low
}

// Unit32 returns a number in [0, 1) computed from one word.
func (w *Words) Unit32() float32 { return Unit32(w.Next()) }

// Unit64 returns a number in [0, 1) computed from two words.
func (w *Words) Unit64() float64 {
	high := w.Next()
	return Unit64(high, w.Next())
}

// Below returns a uniformly distributed number in [0, n). It skips words that would bias the
// result.
func (w *Words) Below(n uint32) uint32 { return below(n, w.Next) }

// Below64 is like Below, for numbers of two words.
func (w *Words) Below64(n uint64) uint64 { return below(n, w.Next64) }

func below[T uint32 | uint64](n T, next func() T) T {
	switch {
	case n == 0:
		next()
		return 0
	case n&(n-1) == 0:
		return next() & (n - 1)
	}
	excess := ^T(0)%n + 1
	for {
		if v := next(); v >= excess {
			return v % n
		}
	}
}
