package master

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/weft-ml/weft/internal/proto/pb"
)

// shownHandle is the number of characters of a handle that others than its owner may see.
const shownHandle = 8

// Inspect describes the open sessions and their running steps, the oldest session first. It asks
// the tasks that steps wait for whether they live.
func (m *Master) Inspect(ctx context.Context) []*pb.SessionInfo {
	sessions := m.all()
	slices.SortFunc(sessions, func(a, b *session) int { return cmp.Or(a.created.Compare(b.created), cmp.Compare(a.handle, b.handle)) })
	out := make([]*pb.SessionInfo, len(sessions))
	for i, s := range sessions {
		out[i] = s.inspect(ctx)
	}
	return out
}

// shownHandle returns the start of the handle, enough to recognize it.
func (s *session) shownHandle() string { return s.handle[:min(shownHandle, len(s.handle))] }

func (s *session) inspect(ctx context.Context) *pb.SessionInfo {
	now := time.Now()
	info := &pb.SessionInfo{Handle: s.shownHandle(), AgeSeconds: now.Sub(s.created).Seconds()}
	if s.owner != nil {
		info.Owner = s.owner.String()
	}
	s.mu.Lock()
	if s.graph != nil {
		info.Nodes = int64(s.graph.source.NumNodes())
	}
	var steps []stalled
	var tasks []unfinished
	for st := range s.running {
		running := time.Duration(0)
		if n := &st.notice; !n.since.IsZero() {
			running = now.Sub(n.since)
		}
		snapshot := stalled{st, st.id, st.unfinished(), st.ctx.Err() != nil, running}
		steps, tasks = append(steps, snapshot), append(tasks, snapshot.waits...)
	}
	s.mu.Unlock()
	slices.SortFunc(steps, func(a, b stalled) int { return cmp.Or(cmp.Compare(b.running, a.running), cmp.Compare(a.id, b.id)) })
	slices.SortFunc(tasks, func(a, b unfinished) int { return cmp.Compare(a.task.String(), b.task.String()) })
	tasks = slices.CompactFunc(tasks, func(a, b unfinished) bool { return a.task == b.task })
	silent := s.probe(ctx, tasks, probeTimeout)
	for _, st := range steps {
		step := &pb.StepInfo{Id: st.id, RunningSeconds: st.running.Seconds(), Failed: st.failed}
		for _, u := range st.waits {
			wait := &pb.WaitInfo{Task: u.task.String(), Call: u.call, Silent: silent[u.task]}
			if w, err := s.workers.Worker(u.task); err == nil {
				if c, ok := w.(connection); ok {
					wait.Address = c.Address()
				}
			}
			step.Waits = append(step.Waits, wait)
		}
		info.Steps = append(info.Steps, step)
	}
	return info
}
