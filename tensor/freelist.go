package tensor

import (
	"runtime"
	"slices"
	"sync"
)

// minListed is the smallest buffer, in bytes, that waits in a free list instead of a sync.Pool. A
// pool hides the buffers of one processor from the others, and allocating a large buffer costs more
// than a lock.
const minListed = 1 << 20

// freeList holds the free buffers of one large size class. As in a sync.Pool, buffers that are not
// reused between two garbage collections are dropped by the second one: they move from the young to
// the old generation first.
type freeList struct {
	mu    sync.Mutex
	young []*Buffer // guarded by mu; added since the last collection
	old   []*Buffer // guarded by mu; added before the last collection
	aging bool      // guarded by mu; the next collection calls age
}

var freeLists [numClasses]freeList

// take returns a buffer of at least size bytes, or nil if there is none.
func (s *freeList) take(size int) *Buffer {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, list := range []*[]*Buffer{&s.young, &s.old} {
		for i, b := range slices.Backward(*list) {
			if len(b.mem) >= size {
				*list = slices.Delete(*list, i, i+1)
				return b
			}
		}
	}
	return nil
}

func (s *freeList) put(b *Buffer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.young = append(s.young, b)
	s.watchLocked()
}

// dropFree drops the free large buffers, so that the garbage collector can return their memory.
func dropFree() {
	for i := range freeLists {
		s := &freeLists[i]
		s.mu.Lock()
		s.young, s.old = nil, nil
		s.mu.Unlock()
	}
}

// freeBytes returns the size of the free large buffers.
func freeBytes() int64 {
	n := int64(0)
	for i := range freeLists {
		s := &freeLists[i]
		s.mu.Lock()
		for _, list := range [][]*Buffer{s.young, s.old} {
			for _, b := range list {
				n += int64(len(b.mem))
			}
		}
		s.mu.Unlock()
	}
	return n
}

// watchLocked arranges that the next collection calls age.
func (s *freeList) watchLocked() {
	if !s.aging {
		s.aging = true
		runtime.AddCleanup(new([16]byte), (*freeList).age, s)
	}
}

// age drops the old generation and makes the young generation old. It runs after a collection.
func (s *freeList) age() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.aging = false
	s.old, s.young = s.young, nil
	if len(s.old) > 0 {
		s.watchLocked()
	}
}
