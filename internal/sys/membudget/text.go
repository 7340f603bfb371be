package membudget

import "strings"

// Text builds a string. It asks for its memory each time it grows: while it is moved to larger
// memory, both take memory, so what was asked for each piece does not cover it.
type Text struct{ b strings.Builder }

// TryWrite appends s. It returns false if there is no memory for it.
func (t *Text) TryWrite(s string) bool {
	if free := t.b.Cap() - t.b.Len(); len(s) > free && !t.grow(len(s)) {
		return false
	}
	t.b.WriteString(s)
	return true
}

// WriteString appends s. It panics as [Make] does.
func (t *Text) WriteString(s string) {
	if !t.TryWrite(s) {
		panic(&Exceeded{t.size(len(s))})
	}
}

// String returns the text, whose memory it shares.
func (t *Text) String() string { return t.b.String() }

// size is the capacity of the builder after it has grown for n bytes.
func (t *Text) size(n int) int64 { return 2*int64(t.b.Cap()) + int64(n) }

func (t *Text) grow(n int) bool {
	if t.size(n) < minMade {
		return true
	}
	return Reserve(t.size(n), func() { t.b.Grow(n) })
}
