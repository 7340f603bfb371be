package worker

import (
	"context"
	"sync"
	"time"

	"github.com/weft-ml/weft/internal/sys/failpoint"
)

// A session ends when its master says so. A request that ends a session can be lost with its link,
// and a master can vanish. So a worker asks the masters of unused sessions whether they still have
// them, and drops those that they do not have.
//
// A training program may be idle for hours. These are no evidence that a session has ended: silence
// of its master, the end of a connection, and a master that this task never could reach, because
// the network may allow connections in one direction only. The evidence is
//
//   - that the master does not know a session that has once been complete, because the master has
//     confirmed it or used it, or
//   - that for OrphanTimeout the master did not know a session that it may still be creating, or
//     that a master could not be reached that had been reached before.
//
// A session with a running step is in use. Masters that do not send their name are not asked.

const (
	// leaseChecks is the number of checks within OrphanTimeout.
	leaseChecks = 10
	// leaseTimeout bounds the question to one master.
	leaseTimeout = 10 * time.Second
)

// lease is what a worker knows about the life of a session. Its fields are owned by watchLeases.
type lease struct {
	complete  bool      // the session has been used, or confirmed by its master
	reached   bool      // the master has answered
	doubtedAt time.Time // when the master first did not confirm the session; zero if it has since
}

// orphaned reports whether a session has ended, after its master was asked: whether the master has
// the session, or why it cannot be reached.
func (l *lease) orphaned(now time.Time, has bool, err error, timeout time.Duration) bool {
	if err == nil {
		l.reached = true
	}
	switch {
	case err == nil && has:
		l.complete, l.doubtedAt = true, time.Time{}
		return false
	case err == nil && l.complete:
		return true
	case err != nil && !l.reached:
		return false
	case l.doubtedAt.IsZero():
		l.doubtedAt = now
		return false
	}
	return now.Sub(l.doubtedAt) >= timeout
}

// startLeasesLocked starts to watch the leases, unless that is off or has been done.
func (w *Worker) startLeasesLocked() {
	if w.OrphanTimeout > 0 && !w.watching && !w.closed {
		w.watching = true
		w.leases.Go(w.watchLeases)
	}
}

// watchLeases drops sessions that have ended, until the worker is closed.
func (w *Worker) watchLeases() {
	ticker := time.NewTicker(w.OrphanTimeout / leaseChecks)
	defer ticker.Stop()
	for {
		select {
		case <-w.ctx.Done():
			return
		case now := <-ticker.C:
			w.checkLeases(now)
		}
	}
}

// checkLeases asks the masters of all unused sessions concurrently.
func (w *Worker) checkLeases(now time.Time) {
	w.mu.Lock()
	all := make([]*session, 0, len(w.sessions))
	for _, s := range w.sessions {
		all = append(all, s)
	}
	w.mu.Unlock()
	slots := make(chan struct{}, leaseQuestions)
	var wg sync.WaitGroup
	for _, s := range all {
		if s.master == "" || s.master == s.task.String() || s.peers == nil {
			continue
		}
		if s.active.Swap(false) || w.steps.hasRuns(s) {
			s.lease.complete, s.lease.doubtedAt = true, time.Time{}
			continue
		}
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			has, err := w.ask(s)
			if w.ctx.Err() != nil || !s.lease.orphaned(now, has, err, w.OrphanTimeout) || s.active.Load() {
				return
			}
			w.Log.Warn("dropping a session that its master does not have any more", "session", s.handle, "peer", s.master, "error", err)
			w.remove(s.handle)
		})
	}
	wg.Wait()
}

// leaseQuestions bounds the number of masters that are asked at the same time.
const leaseQuestions = 64

// ask asks the master of a session whether it still has it.
func (w *Worker) ask(s *session) (bool, error) {
	if err := failpoint.Hit("worker/ask-master"); err != nil {
		return false, err
	}
	master, err := s.peers.Peer(s.master)
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(w.ctx, leaseTimeout)
	defer cancel()
	return master.HasSession(ctx, s.handle)
}

// touch marks the session as used.
func (s *session) touch() {
	if !s.active.Load() {
		s.active.Store(true)
	}
}

// hasRuns reports whether a step of a session runs.
func (s *steps) hasRuns(session *session) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, st := range s.byID {
		if st.session == session && len(st.runs) > 0 {
			return true
		}
	}
	return false
}
