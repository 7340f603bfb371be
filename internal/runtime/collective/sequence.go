package collective

import (
	"context"
	"math/rand/v2"
	"sync"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
)

// stepBits masks the numbers of steps. The upper seven bits are reserved and 0.
const stepBits = 1<<57 - 1

// Sequences numbers the steps that run collective operations. Masters that run steps of one graph
// key count from a number that the group leader has chosen, so their steps with the same number run
// together. After a failed step its number is used again, because the other masters may still wait
// with theirs. Whether they do is known to the leader, so the number is fetched from it again.
// Sequences is safe for concurrent use.
type Sequences struct {
	mu    sync.Mutex
	byKey map[int64]*sequence // by graph key; guarded by mu
}

// sequence is the state of one graph key. Its steps run one after the other, because the peers
// could not distinguish two concurrent steps.
type sequence struct {
	token      chan struct{} // holds a token while no step runs
	next       int64         // guarded by Sequences.mu
	known      bool          // next is set; guarded by Sequences.mu
	fromLeader bool          // next came from another task, the leader; guarded by Sequences.mu
}

// NewSequences returns empty sequences.
func NewSequences() *Sequences { return &Sequences{byKey: map[int64]*sequence{}} }

func (s *Sequences) get(key int64) (*sequence, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.byKey[key]
	if q == nil {
		// it stays, as in TensorFlow
		if !membudget.TakeRecord(recordMemory) {
			return nil, status.ResourceExhaustedf("There is not enough memory to number the steps of graph %d (--memory-limit).", key)
		}
		q = &sequence{token: make(chan struct{}, 1)}
		q.token <- struct{}{}
		s.byKey[key] = q
	}
	return q, nil
}

// Peek returns the number of the next step of a graph key. The leader calls it for other masters.
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

// Acquire waits until no other step of the graph key runs, or ctx ends, and returns the number of
// the next step. It calls fetch to get the number from the leader if it is not known; fetch is nil
// on the leader. The caller must call Release if Acquire succeeds.
func (s *Sequences) Acquire(ctx context.Context, key int64, fetch func(context.Context) (int64, error)) (int64, error) {
	q, err := s.get(key)
	if err != nil {
		return 0, err
	}
	select {
	case <-q.token:
	case <-ctx.Done():
		return 0, status.FromContext(ctx, "waiting for another step with the same collective operations")
	}
	if fetch == nil {
		return s.Peek(key)
	}
	s.mu.Lock()
	next, known := q.next, q.known
	s.mu.Unlock()
	if known {
		return next, nil
	}
	if next, err = fetch(ctx); err != nil {
		q.token <- struct{}{}
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	q.next, q.known, q.fromLeader = next, true, true
	return next, nil
}

// Release ends a step, so that the next one can run. If the step succeeded, its number is not used
// again.
func (s *Sequences) Release(key int64, succeeded bool) {
	s.mu.Lock()
	q := s.byKey[key]
	switch {
	case succeeded:
		q.next = (q.next + 1) & stepBits
	case q.fromLeader:
		q.known = false
	}
	s.mu.Unlock()
	q.token <- struct{}{}
}

// Forget makes the next step of a graph key fetch its number from the leader. A master calls it at
// the end of a session: its last step may have succeeded here and failed on other tasks, and the
// leader may be restarted before the next session.
func (s *Sequences) Forget(key int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.byKey[key]
	if q == nil || !q.fromLeader || len(q.token) == 0 { // a step of another session runs
		return
	}
	q.known = false
}
