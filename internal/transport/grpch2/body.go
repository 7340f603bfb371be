package grpch2

// A Body is the memory that a message arrives in. It is told of every byte in order.
type Body interface {
	// Room returns where the next bytes of the message go. It is never empty before the message is
	// complete.
	Buffer() []byte
	// Filled says that the first n bytes of Room hold the next bytes of the message.
	Advance(n int)
	// Discard gives up the memory of a message that nobody is going to read.
	Discard()
}

// firstChunk bounds the memory that a message gets before any of it is there.
const firstChunk = 64 << 10

// Chunks is a Body of ordinary memory, which grows as the message comes: a peer cannot make it
// larger than a few times what it sends.
type Chunks struct {
	data [][]byte // full, but for the last
	room []byte   // of the last
	left int      // bytes of the message that have no memory yet
	have int
}

// NewChunks returns the memory for a message of n bytes.
func NewChunks(n int) *Chunks { return &Chunks{left: n} }

// Room implements [Body].
func (c *Chunks) Buffer() []byte {
	if len(c.room) == 0 && c.left > 0 {
		c.room = make([]byte, min(c.left, max(firstChunk, c.have)))
		c.left -= len(c.room)
		c.data = append(c.data, c.room)
	}
	return c.room
}

// Filled implements [Body].
func (c *Chunks) Advance(n int) {
	c.room = c.room[n:]
	c.have += n
}

// Discard implements [Body].
func (c *Chunks) Discard() {}

// Data returns the message.
func (c *Chunks) Data() [][]byte { return c.data }
