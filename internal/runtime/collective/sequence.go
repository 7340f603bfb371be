package collective

import (
	"context"
	"math/rand/v2"
	"sync"

	"github.com/weft-ml/weft/status"
)

// stepBits masks the numbers of steps; the upper seven bits are 0 for uses to come.
const stepBits = 1<<57 - 1

// Sequences numbers the steps that run collective operations. Masters that run steps of one graph
// key count from the number that the group leader has given out, so that their steps with the same
// number run together. A number is used again after a step that has failed: the others still wait
// with theirs. Whether they do is for the leader to say, who is asked again.
type Sequences struct {
	mu    sync.Mutex
	byKey map[int64]*sequence // guarded by mu; by graph key
}

// sequence is the steps of one graph key. Steps run one after the other: two at the same time could
// not be told apart.
type sequence struct {
	turn  chan struct{} // holds a token while no step runs
	next  int64         // guarded by Sequences.mu
	known bool          // guarded by Sequences.mu; next is set
	asked bool          // guarded by Sequences.mu; next came from the leader, which is another task
}

// NewSequences returns sequences that have not begun.
func NewSequences() *Sequences { return &Sequences{byKey: map[int64]*sequence{}} }

func (s *Sequences) get(key int64) (*sequence, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.byKey[key]
	if q == nil {
		if len(s.byKey) >= maxRecords {
			return nil, status.ResourceExhaustedf("%d graphs with collective operations are known", maxRecords)
		}
		q = &sequence{turn: make(chan struct{}, 1)}
		q.turn <- struct{}{}
		s.byKey[key] = q
	}
	return q, nil
}

// Peek returns the number of the next step of a graph key, as the leader tells it to other masters.
func (s *Sequences) Peek(key int64) (int64, error) {
	q, err := s.get(key)
	if err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !q.known {
		q.next, q.known = int64(rand.Uint64()&stepBits), true
	}
	return q.next, nil
}

// Acquire waits for its turn, no longer than ctx lives, and returns the number of the next step,
// which the leader is asked for if it is not known; ask is nil on the leader. The caller must call
// Release.
func (s *Sequences) Acquire(ctx context.Context, key int64, ask func(context.Context) (int64, error)) (int64, error) {
	q, err := s.get(key)
	if err != nil {
		return 0, err
	}
	select {
	case <-q.turn:
	case <-ctx.Done():
		return 0, status.FromContext(ctx, "waiting for another step with the same collective operations")
	}
	if ask == nil {
		return s.Peek(key)
	}
	s.mu.Lock()
	next, known := q.next, q.known
	s.mu.Unlock()
	if known {
		return next, nil
	}
	if next, err = ask(ctx); err != nil {
		q.turn <- struct{}{}
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	q.next, q.known, q.asked = next, true, true
	return next, nil
}

// Release ends the turn of a step. One that has succeeded uses its number up.
func (s *Sequences) Release(key int64, succeeded bool) {
	s.mu.Lock()
	q := s.byKey[key]
	switch {
	case succeeded:
		q.next = (q.next + 1) & stepBits
	case q.asked:
		q.known = false
	}
	s.mu.Unlock()
	q.turn <- struct{}{}
}
