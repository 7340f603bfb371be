package master

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/role/peer"
	"github.com/weft-ml/weft/internal/trust"
	"github.com/weft-ml/weft/status"
)

// session is one client's graph on a set of tasks, and the plans for its steps.
type session struct {
	master   *Master
	handle   string
	created  time.Time
	owner    *trust.Principal // has created the session; nil if it has no certificate
	config   *pb.ConfigProto
	task     cluster.Task // the master's name in the session's cluster
	workers  Workers
	tasks    []cluster.Task // tasks that the session may use
	devices  devices
	releases releases // of the tasks
	// a task computes the IDs of frames as old releases do, so the others must, too
	namedFrames bool
	client      remoteDevice // device that feeds come from and fetches go to
	// incarnations of the devices, by full name.
	incarnations map[string]uint64
	ownCluster   bool // the session has brought its own cluster

	ctx    context.Context // ends when the session is closed; its cause is the reason
	cancel context.CancelCauseFunc
	names  atomic.Int64 // last number in the names of generated nodes
	// CleanupGraph calls in progress. A worker session is deleted after them: a task of TensorFlow
	// 1.12 sometimes ends with a segmentation fault if it gets both at once.
	cleanups background
	active   atomic.Bool // the session has been used since the last tick of watch
	used     time.Time   // time of the last tick that found it used; owned by watch

	mu sync.Mutex
	// reason for the end of the session, nil while it is open; guarded by mu
	closed *status.Error
	graph  *graphState // guarded by mu
	// plans of exact spellings of requests, by hash; guarded by mu
	requestKeys  map[uint64]*requestKey
	plans        map[string]*plan       // by signature; guarded by mu
	partials     map[string]*partialRun // by handle; guarded by mu
	callables    map[int64]*callable    // by handle; guarded by mu
	nextCallable int64                  // handle of the next callable; guarded by mu
	nextPartial  int64                  // handle of the next partial run; guarded by mu
	planUses     int64                  // clock of plan.used; guarded by mu
	running      map[*step]struct{}     // guarded by mu
	// closed when the last step of a closed session has ended; guarded by mu
	idle chan struct{}
}

// touch marks the session as used. It does not read the clock, which would take longer than the
// rest of a small step here.
func (s *session) touch() {
	if !s.active.Load() {
		s.active.Store(true)
	}
}

// busy reports whether a step runs.
func (s *session) busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.running) > 0
}

// enter registers a step that begins.
func (s *session) enter(st *step) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed != nil {
		return errClosed
	}
	s.running[st] = struct{}{}
	return nil
}

// leave unregisters a step that has ended.
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

// close cancels the running steps, waits until they have ended, and drops the session on all its
// tasks. It returns when ctx ends; the rest then continues in the background.
func (s *session) close(ctx context.Context, why *status.Error) {
	s.mu.Lock()
	if s.closed == nil {
		s.closed = why
		for st := range s.running {
			st.ctx.Cancel(why)
		}
		if len(s.running) == 0 {
			close(s.idle)
		}
	}
	s.mu.Unlock()
	s.cancel(why)
	done := make(chan struct{})
	s.master.background.Go(func() {
		defer close(done)
		<-s.idle
		s.endPartials()
		s.forgetNumbers()
		s.deregisterAll()
		s.awaitCleanups()
		s.deleteWorkerSessions()
	})
	s.awaitEnd(ctx, done)
}

// awaitEnd waits for the end of a closed session, and logs the tasks that it waits for.
func (s *session) awaitEnd(ctx context.Context, done <-chan struct{}) {
	ticker := time.NewTicker(logPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-done:
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

// awaitCleanups waits until the tasks have answered the cleanups of ended steps, for at most
// cleanupGrace: a task that does not answer must not delay the end of the session on the others.
func (s *session) awaitCleanups() {
	done := make(chan struct{})
	s.master.background.Go(func() {
		defer close(done)
		s.cleanups.wait()
	})
	timer := time.NewTimer(cleanupGrace)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
}

// deleteWorkerSessions drops the session on all its tasks. Errors are logged. Tasks that cannot be
// reached are asked again in the background.
func (s *session) deleteWorkerSessions() {
	var left taskSet
	for _, task := range s.tasks {
		if !s.releases[task].Has(peer.NoWorkerSessions) {
			left.add(task)
		}
	}
	if err := s.deleteOn(&left); err != nil {
		level := slog.LevelWarn
		if status.CodeOf(err) == status.Unavailable {
			level = slog.LevelInfo // a task that has ended first has no sessions
		}
		s.master.Log.Log(s.master.ctx, level, "not all tasks dropped a session that was closed", "session", s.handle, "error", err)
	}
	if len(left.list()) > 0 {
		s.master.background.Go(func() { s.deleteLater(&left) })
	}
}

// deleteOn drops the session on tasks. Those that have answered leave the set.
func (s *session) deleteOn(left *taskSet) error {
	ctx, cancel := context.WithTimeout(s.master.ctx, cleanupTimeout)
	defer cancel()
	tasks := left.list()
	return forEachConcurrently(len(tasks), func(i int) error {
		w, err := s.workers.Worker(tasks[i])
		if err == nil {
			_, err = w.DeleteWorkerSession(ctx, &pb.DeleteWorkerSessionRequest{SessionHandle: s.handle})
		}
		switch status.CodeOf(err) {
		case status.Unavailable, status.DeadlineExceeded, status.Cancelled:
		default:
			left.remove(tasks[i])
		}
		if err != nil {
			return fromTask(tasks[i], err)
		}
		return nil
	})
}

// deleteLater drops the session on tasks that could not be reached before: a link may have been
// cut.
func (s *session) deleteLater(left *taskSet) {
	ticker := time.NewTicker(deletePeriod)
	defer ticker.Stop()
	for range deleteTries {
		select {
		case <-s.master.ctx.Done():
			return
		case <-ticker.C:
		}
		if _ = s.deleteOn(left); len(left.list()) == 0 {
			return
		}
	}
}

// eachTask calls f for the workers of all tasks concurrently and returns the combined error.
func (s *session) eachTask(f func(task cluster.Task, w Worker) error) error {
	return forEachConcurrently(len(s.tasks), func(i int) error {
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

// forEachConcurrently calls f for 0 to n-1 concurrently, waits, and returns the combined error.
func forEachConcurrently(n int, f func(i int) error) error {
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
