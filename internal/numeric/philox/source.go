package philox

import (
	"math/rand/v2"
	"sync"
)

// Source is a shared stream. Each user takes a part of it, so that concurrent users draw different
// numbers. It is safe for concurrent use.
type Source struct {
	mu  sync.Mutex
	gen Generator // guarded by mu
}

// NewSource returns the stream for a pair of seeds, or a random one if both are zero.
func NewSource(seed, seed2 int) *Source {
	if seed == 0 && seed2 == 0 {
		return &Source{gen: New(rand.Uint64(), rand.Uint64())}
	}
	return &Source{gen: New(uint64(seed), uint64(seed2))}
}

// Take returns the position of the next n outputs and reserves them for the caller.
func (s *Source) Take(n uint64) Generator {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.gen
	s.gen.Skip(n)
	return g
}

// TakeWords is Take for n words.
func (s *Source) TakeWords(n int) Generator { return s.Take(uint64(n+3) / 4) }
