package rpc

import (
	"sync"

	"google.golang.org/grpc/mem"
)

// frameSize is the most that gRPC puts in one frame, and so the size of the buffers in which large messages arrive.
const frameSize = 16 << 10

// framePool recycles frames without clearing them, which gRPC's own pool does: they are written over in full. All other
// buffers it leaves to that pool.
type framePool struct{ free sync.Pool }

var frames = &framePool{}

// Get returns a buffer of the given length.
func (p *framePool) Get(length int) *[]byte {
	if length > frameSize {
		return mem.DefaultBufferPool().Get(length)
	}
	if b, ok := p.free.Get().(*[]byte); ok {
		*b = (*b)[:length]
		return b
	}
	b := make([]byte, length, frameSize)
	return &b
}

// Put takes a buffer back.
func (p *framePool) Put(b *[]byte) {
	if cap(*b) == frameSize {
		p.free.Put(b)
		return
	}
	mem.DefaultBufferPool().Put(b)
}
