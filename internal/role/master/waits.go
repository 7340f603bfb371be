package master

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// waits holds the requests that wait for tasks to come up. The zero value is ready for use.
type waits struct {
	mu      sync.Mutex
	finders []*finder // the oldest first; guarded by mu
}

// add adds a request until remove is called.
func (w *waits) add(f *finder) (remove func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.finders = append(w.finders, f)
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.finders = slices.DeleteFunc(w.finders, func(other *finder) bool { return other == f })
	}
}

// Waits says in words for which tasks new sessions and long steps of the master wait. It asks no
// task.
func (m *Master) Waits() []string {
	now := time.Now()
	m.waits.mu.Lock()
	finders := slices.Clone(m.waits.finders)
	m.waits.mu.Unlock()
	var out []string
	for _, f := range finders {
		f.mu.Lock()
		for _, t := range f.missingLocked() {
			out = append(out, fmt.Sprintf("a new session has waited %v for %s (%s)", now.Sub(f.began).Round(time.Millisecond), taskAt(f.workers, t), f.reasonLocked(t)))
		}
		f.mu.Unlock()
	}
	for _, s := range m.all() {
		s.mu.Lock()
		for st := range s.running {
			if n := &st.notice; n.since.IsZero() || now.Sub(n.since) < stallTime {
				continue
			}
			for _, u := range st.unfinished() {
				out = append(out, fmt.Sprintf("step %d of session %s… has waited at least %v for %s: %s", st.id, s.shownHandle(), now.Sub(st.notice.since).Round(time.Second), s.taskAt(u.task), u.call))
			}
		}
		s.mu.Unlock()
	}
	return out
}
