package master

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/status"
)

// session is one client's graph on some tasks, and the plans made of it.
type session struct {
	master  *Master
	handle  string
	config  *pb.ConfigProto
	task    cluster.Task // the master's name in the session's cluster
	workers Workers
	tasks   []cluster.Task // those that the session may use
	devices devices
	client  remoteDevice // where feeds come from and fetches go to
	// incarnations has those of the devices, by full name.
	incarnations map[string]uint64
	own          bool // the session brought its own cluster

	ctx    context.Context // ends when the session is closed; its cause is the reason
	cancel context.CancelCauseFunc
	names  atomic.Int64 // last number in the names of nodes that are made
	active atomic.Bool  // the session has been used since it was last looked at
	used   time.Time    // when it was last seen to have been; for who looks for unused sessions

	mu sync.Mutex
	// guarded by mu; why the session is closed, nil while it is open
	closed *status.Error
	graph  *graphState // guarded by mu
	// guarded by mu; plans by the hash of a request's names as they come
	orders    map[uint64]*order
	plans     map[string]*plan       // guarded by mu; by signature
	partials  map[string]*partialRun // guarded by mu; by handle
	callables map[int64]*callable    // guarded by mu; by handle
	made      int64                  // guarded by mu; number of callables that were made
	setUp     int64                  // guarded by mu; number of partial runs that were set up
	uses      int64                  // guarded by mu; how often plans were used
	running   map[*step]struct{}     // guarded by mu
	// guarded by mu; closed when the last step of a closed session has ended
	idle chan struct{}
}

// touch keeps the session from being collected. It does not look at the clock, which would take
// longer than all else that a small step does here.
func (s *session) touch() {
	if !s.active.Load() {
		s.active.Store(true)
	}
}

// enter adds a step that begins.
func (s *session) enter(st *step) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed != nil {
		return errClosed
	}
	s.running[st] = struct{}{}
	return nil
}

// leave removes a step that has ended.
func (s *session) leave(st *step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.running, st)
	if s.closed != nil && len(s.running) == 0 {
		close(s.idle)
	}
}

// closeReason returns why the session is closed, nil while it is open.
func (s *session) closeReason() *status.Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// close cancels what runs, waits until it has ended, and drops the session on all its tasks. It
// waits no longer than ctx lives; the rest then goes on by itself.
func (s *session) close(ctx context.Context, why *status.Error) {
	s.mu.Lock()
	if s.closed == nil {
		s.closed = why
		for st := range s.running {
			st.life.Cancel(why)
		}
		if len(s.running) == 0 {
			close(s.idle)
		}
	}
	s.mu.Unlock()
	s.cancel(why)
	over := make(chan struct{})
	s.master.background.Go(func() {
		defer close(over)
		<-s.idle
		s.endPartials()
		s.deleteWorkerSessions()
	})
	s.awaitEnd(ctx, over)
}

// awaitEnd waits for the end of a session that is closed, and says from time to time for whom it
// waits.
func (s *session) awaitEnd(ctx context.Context, over <-chan struct{}) {
	ticker := time.NewTicker(logPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-over:
			return
		case <-ctx.Done():
			return
		case <-ticker.C:
			s.mu.Lock()
			for st := range s.running {
				s.master.Log.Warn("CloseSession still waiting for a step that was cancelled",
					"session", s.handle, "step", st.id, "tasks", s.describe(st.unfinished(), nil, 0))
			}
			s.mu.Unlock()
		}
	}
}

// deleteWorkerSessions drops the session on all its tasks. That one of them cannot be reached is
// logged only.
func (s *session) deleteWorkerSessions() {
	ctx, cancel := context.WithTimeout(s.master.ctx, cleanupTimeout)
	defer cancel()
	err := s.eachTask(func(_ cluster.Task, w Worker) error {
		_, err := w.DeleteWorkerSession(ctx, &pb.DeleteWorkerSessionRequest{SessionHandle: s.handle})
		return err
	})
	if err != nil {
		s.master.Log.Warn("not all tasks dropped a session that was closed", "session", s.handle, "error", err)
	}
}

// eachTask calls f for the workers of all tasks at the same time and returns the sum of the errors.
func (s *session) eachTask(f func(task cluster.Task, w Worker) error) error {
	return together(len(s.tasks), func(i int) error {
		w, err := s.workers.Worker(s.tasks[i])
		if err != nil {
			return err
		}
		if err := f(s.tasks[i], w); err != nil {
			return fromTask(s.tasks[i], err)
		}
		return nil
	})
}

// together calls f for 0 to n-1 at the same time and returns the sum of the errors.
func together(n int, f func(i int) error) error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = f(i) })
	}
	wg.Wait()
	var group status.Group
	for _, err := range errs {
		group.Add(err)
	}
	return group.Concatenated()
}
