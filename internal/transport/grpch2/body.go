package grpch2

import "github.com/weft-ml/weft/internal/sys/membudget"

// A Body is the memory that a message is read into. Its methods are called by one goroutine at a
// time, and see every byte of the message in order.
type Body interface {
	// Buffer returns the memory for the next bytes of the message. It is not empty before the
	// message is complete.
	Buffer() []byte
	// Advance reports that the first n bytes of Buffer now hold the next bytes of the message.
	Advance(n int)
	// Discard releases the memory of a message that is not going to be used. No other method is
	// called afterwards.
	Discard()
}

// firstChunk is the largest memory, in bytes, that a message gets before any of its data has
// arrived.
const firstChunk = 64 << 10

// Chunks is a [Body] in garbage-collected memory. The memory grows as data arrives, so a peer
// cannot make it larger than about twice what it has sent.
type Chunks struct {
	data [][]byte // chunks; all but the last are full
	free []byte   // unused part of the last chunk
	left int      // bytes of the message that have no memory yet
	// there is no memory for the message: its rest is read into one chunk, over and over
	refused bool
	have    int // bytes of the message that have arrived
}

// NewChunks returns a Body for a message of n bytes.
func NewChunks(n int) *Chunks { return &Chunks{left: n} }

// Buffer implements [Body].
func (c *Chunks) Buffer() []byte {
	if len(c.free) == 0 && c.left > 0 {
		n := min(c.left, max(firstChunk, c.have))
		if !c.refused && n >= firstChunk && !membudget.Take(int64(n)) {
			c.refused, c.data = true, [][]byte{make([]byte, firstChunk)}
		}
		if c.refused {
			c.free = c.data[0][:min(n, firstChunk)]
		} else {
			c.free = make([]byte, n)
			c.data = append(c.data, c.free)
		}
		c.left -= len(c.free)
	}
	return c.free
}

// Advance implements [Body].
func (c *Chunks) Advance(n int) {
	c.free = c.free[n:]
	c.have += n
}

// Discard implements [Body].
func (c *Chunks) Discard() {}

// Data returns the message in pieces. They belong to the caller.
func (c *Chunks) Data() [][]byte { return c.data }
