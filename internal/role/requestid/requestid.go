// Package requestid detects duplicate requests, such as one that a transport has repeated after a
// lost connection. Senders give every request a random number; receivers remember the most recent
// numbers.
package requestid

import (
	"math/rand/v2"
	"sync"

	"github.com/weft-ml/weft/status"
)

// New returns an identifier for a request. It is random and never 0.
func New() int64 {
	for {
		if id := int64(rand.Uint64()); id != 0 {
			return id
		}
	}
}

// Recent remembers the most recent identifiers, up to the number given to [NewRecent]. It is safe
// for concurrent use.
type Recent struct {
	shards []shard
}

// A shard holds the identifiers with one remainder. Its memory grows with the number of
// identifiers.
type shard struct {
	size int

	mu   sync.Mutex
	set  map[int64]struct{} // identifiers in ring; guarded by mu
	ring []int64            // oldest at next, once it is full; guarded by mu
	next int                // guarded by mu
}

// NewRecent returns a memory for about size identifiers. They are spread over shards, so that
// requests rarely wait for each other.
func NewRecent(size, shards int) *Recent {
	r := &Recent{shards: make([]shard, shards)}
	for i := range r.shards {
		r.shards[i].size = max(size/shards, 1)
		r.shards[i].set = map[int64]struct{}{}
	}
	return r
}

// Track returns an Aborted error if the identifier is known, and remembers it otherwise. The error
// names the request by method and detail. Senders without identifiers use 0, which is always new.
func (r *Recent) Track(id int64, method, detail string) error {
	if id == 0 || r.shards[uint64(id)%uint64(len(r.shards))].insert(id) {
		return nil
	}
	return status.Abortedf("The same %s request was received twice. %s", method, detail)
}

func (s *shard) insert(id int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.set[id]; ok {
		return false
	}
	s.set[id] = struct{}{}
	if len(s.ring) < s.size {
		s.ring = append(s.ring, id)
		return true
	}
	delete(s.set, s.ring[s.next])
	s.ring[s.next] = id
	s.next = (s.next + 1) % s.size
	return true
}
