package tensor

import (
	"runtime"
	"slices"
	"sync"
)

// minShelved is the size in bytes from which buffers wait on shelves rather than in pools of
// package sync: these hide what one processor has put there last from the others, and a large
// buffer that is made anew costs more than a lock.
const minShelved = 1 << 20

// shelf holds the free buffers of one large class for whoever is next. What nobody has taken
// between two garbage collections is left to the second, as in a sync.Pool.
type shelf struct {
	mu    sync.Mutex
	fresh []*Buffer // guarded by mu; put there since the last collection
	old   []*Buffer // guarded by mu; before
	aging bool      // guarded by mu; the next collection will be noticed
}

var shelves [numClasses]shelf

// take returns a buffer of at least size bytes, or nil if there is none.
func (s *shelf) take(size int) *Buffer {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, list := range []*[]*Buffer{&s.fresh, &s.old} {
		for i, b := range slices.Backward(*list) {
			if len(b.mem) >= size {
				*list = slices.Delete(*list, i, i+1)
				return b
			}
		}
	}
	return nil
}

func (s *shelf) put(b *Buffer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fresh = append(s.fresh, b)
	s.watchLocked()
}

// DropSpare leaves the large buffers that wait to be used again to the garbage collector.
func DropSpare() {
	for i := range shelves {
		s := &shelves[i]
		s.mu.Lock()
		s.fresh, s.old = nil, nil
		s.mu.Unlock()
	}
}

// watchLocked makes the next collection age what is here.
func (s *shelf) watchLocked() {
	if !s.aging {
		s.aging = true
		runtime.AddCleanup(new([16]byte), (*shelf).age, s)
	}
}

// age is called after a collection.
func (s *shelf) age() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.aging = false
	s.old, s.fresh = s.fresh, nil
	if len(s.old) > 0 {
		s.watchLocked()
	}
}
