package device

import (
	"errors"
	"math/bits"
	"sync"

	"github.com/weft-ml/weft/internal/gpu/driver"
	"github.com/weft-ml/weft/status"
)

// staging is page-locked memory of the host for copies. Copies from and to other memory would make
// the goroutine that queues them wait for the stream.
type staging struct {
	dev driver.Device

	mu     sync.Mutex
	free   [64][][]byte // guarded by mu; by the logarithm of the size
	idle   int64        // guarded by mu; bytes in free
	closed bool         // guarded by mu
}

const (
	// minStaged is the smallest piece in bytes: a page.
	minStaged = 4 << 10
	// minMoved is the size in bytes from which staging memory is emptied on a goroutine of its own.
	// The copy of that many bytes takes 0.1 ms, and other callbacks of the stream would wait for
	// it.
	minMoved = 1 << 20
	// maxIdleStaging bounds the page-locked memory that is not in use, in bytes.
	maxIdleStaging = 256 << 20
)

func stagingClass(size int) int { return bits.Len(uint(max(size, minStaged) - 1)) }

// take returns size bytes. The caller passes them to put.
func (s *staging) take(size int) ([]byte, error) {
	class := stagingClass(size)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, status.Cancelledf("the GPU device has been closed")
	}
	var b []byte
	if list := s.free[class]; len(list) > 0 {
		b = list[len(list)-1]
		s.free[class] = list[:len(list)-1]
		s.idle -= int64(len(b))
	} else {
		var err error
		if b, err = s.dev.Pinned(1 << class); err != nil {
			if errors.Is(err, driver.ErrOutOfMemory) {
				return nil, status.ResourceExhaustedf("OOM when allocating %d bytes of page-locked memory: %v", size, err)
			}
			return nil, status.Internalf("cannot allocate page-locked memory: %v", err)
		}
	}
	return b[:size], nil
}

// put ends the use of a piece.
func (s *staging) put(b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b = b[:cap(b)]
	if s.closed || s.idle+int64(len(b)) > maxIdleStaging {
		_ = s.dev.Unpin(b) // the memory stays locked
		return
	}
	s.free[stagingClass(len(b))] = append(s.free[stagingClass(len(b))], b)
	s.idle += int64(len(b))
}

// close releases the pieces that are not in use. The others are released when they are put back.
func (s *staging) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for i, list := range s.free {
		for _, b := range list {
			_ = s.dev.Unpin(b) // the memory stays locked
		}
		s.free[i] = nil
	}
	s.idle = 0
}
