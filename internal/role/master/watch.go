package master

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/internal/role/quota"
)

// watch closes unused sessions and logs stalled steps, until the master is closed.
func (m *Master) watch() {
	ticker := time.NewTicker(watchPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-m.ctx.Done():
			return
		case now := <-ticker.C:
			m.closeUnused(now)
			var wg sync.WaitGroup
			for _, s := range m.all() {
				wg.Go(func() {
					s.endUnused(now)
					s.logStalled(now)
				})
			}
			wg.Wait()
		}
	}
}

// all returns the open sessions.
func (m *Master) all() []*session {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make([]*session, 0, len(m.sessions))
	for _, s := range m.sessions {
		out = append(out, s)
	}
	return out
}

// closeUnused closes the sessions that were not used for SessionTTL.
func (m *Master) closeUnused(now time.Time) {
	for _, s := range m.all() {
		if s.active.Swap(false) || s.busy() {
			s.used = now
		}
		if m.SessionTTL <= 0 || now.Sub(s.used) <= m.SessionTTL || m.remove(s.handle) == nil {
			continue
		}
		m.Log.Warn("closing a session that has not been used; raise the limit if replicas start with long delays",
			"session", s.handle, "limit", m.SessionTTL)
		m.Quota.Hit(quota.SessionTime)
		m.background.Go(func() { s.close(m.ctx, closedByGC) })
	}
}

// notice records what the master has seen of a long step.
type notice struct {
	since  time.Time // time when the step was first seen running, or first seen to have failed
	probed time.Time // time of the last probe of its tasks
	logged time.Time // time of the last log line
	failed bool
	silent string // silent tasks in the last log line
}

// stalled is a snapshot of a long step, taken under the lock of its session.
type stalled struct {
	step    *step
	id      int64
	waits   []unfinished
	failed  bool
	running time.Duration // since it was first seen, or first seen to have failed
}

// logStalled logs the long steps of the session and the tasks that they wait for. A silent task is
// logged after stallTime, and again when the set of silent tasks changes. A long step whose tasks
// all live is logged once. A step that goes on after it has failed is logged repeatedly.
func (s *session) logStalled(now time.Time) {
	steps := s.stalled(now)
	if len(steps) == 0 {
		return
	}
	var tasks []unfinished
	for _, st := range steps {
		for _, u := range st.waits {
			if !slices.ContainsFunc(tasks, func(other unfinished) bool { return other.task == u.task }) {
				tasks = append(tasks, u)
			}
		}
	}
	silent := s.probe(s.ctx, tasks, probeTimeout)
	if s.ctx.Err() != nil {
		return
	}
	for _, st := range steps {
		s.logStep(now, st, silent)
	}
}

// stalled returns the steps whose tasks are due for a probe.
func (s *session) stalled(now time.Time) []stalled {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []stalled
	for st := range s.running {
		n := &st.notice
		if failed := st.ctx.Err() != nil; n.since.IsZero() || failed != n.failed {
			*n = notice{since: now, failed: failed}
			continue
		}
		if now.Sub(n.since) < stallTime || now.Sub(n.probed) < stallTime {
			continue
		}
		n.probed = now
		out = append(out, stalled{st, st.id, st.unfinished(), n.failed, now.Sub(n.since)})
	}
	return out
}

// logStep logs one step, unless the same line has been logged.
func (s *session) logStep(now time.Time, st stalled, silent map[cluster.Task]string) {
	var names []string
	for _, u := range st.waits {
		if _, ok := silent[u.task]; ok {
			names = append(names, u.task.String())
		}
	}
	text := strings.Join(names, " ")
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.running[st.step]; !ok || st.step.id != st.id {
		return // it has ended since
	}
	n := &st.step.notice
	long := st.running >= longStep && n.logged.IsZero()
	if st.failed {
		long = st.running >= longStep
	}
	if !long && text == n.silent {
		return
	}
	n.silent, n.logged = text, now
	log := s.master.Log.With("session", s.handle, "step", st.id, "for", st.running.Round(time.Second), "tasks", s.describe(st.waits, silent, probeTimeout))
	switch {
	case st.failed:
		log.Error("a step still runs long after it has failed")
	case text != "":
		log.Warn("a step waits for tasks that do not answer", "silent", text)
	default:
		log.Warn("a step still waits for tasks")
	}
}
