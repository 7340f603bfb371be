package master

import "time"

// watch closes sessions that nobody has used for long, and says which tasks hold up steps, until
// the master is closed.
func (m *Master) watch() {
	ticker := time.NewTicker(watchPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-m.ctx.Done():
			return
		case now := <-ticker.C:
			m.collect(now)
			for _, s := range m.all() {
				s.logStuck(now)
			}
		}
	}
}

// all returns the sessions.
func (m *Master) all() []*session {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make([]*session, 0, len(m.sessions))
	for _, s := range m.sessions {
		out = append(out, s)
	}
	return out
}

// collect closes the sessions that nobody has used for long.
func (m *Master) collect(now time.Time) {
	for _, s := range m.all() {
		if s.active.Swap(false) {
			s.used = now
		}
		if m.SessionTTL <= 0 || now.Sub(s.used) <= m.SessionTTL || m.remove(s.handle) == nil {
			continue
		}
		m.Log.Warn("closing a session that was not used for long; if replicas start with long delays, raise the limit",
			"session", s.handle, "limit", m.SessionTTL)
		m.background.Go(func() { s.close(m.ctx, closedByGC) })
	}
}

// notice is what was seen of a step that takes long.
type notice struct {
	since  time.Time // when the step was first seen running, or first seen to have failed
	failed bool
	told   bool // that it runs
}

// logStuck says which tasks have not ended their part of a step that has run for long, once, and of
// one that failed long ago, again and again: the one may wait for what is to come, the other should
// have ended.
func (s *session) logStuck(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for st := range s.running {
		n := &st.notice
		if failed := st.life.Err() != nil; n.since.IsZero() || failed != n.failed {
			n.since, n.failed = now, failed
			continue
		}
		long := now.Sub(n.since)
		if long < stuckAfter || n.told && !n.failed {
			continue
		}
		log := s.master.Log.With("session", s.handle, "step", st.id, "tasks", st.unfinished(), "for", long)
		if n.failed {
			log.Error("a step is still not over long after it has failed")
			continue
		}
		log.Warn("a step still waits for tasks")
		n.told = true
	}
}
