package server

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/internal/proto/pb"
)

// psJob is the job of parameter servers. They are not waited for: they wait for the others.
const psJob = "ps"

// WithExitWithJob makes [Server.Run] shut the server down when the job of the cluster is over: when
// all tasks other than parameter servers have been done for the given time, after the job began. A
// task is done if its address refuses connections, or if it is a task of Weft that has no session.
// The time is ten times as long if such a task has never answered, since it may start late. A task
// that does not answer at all is not done, since the network may be the reason. The server of
// TensorFlow does not tell its sessions, so it must end.
//
// The time must be longer than programs take to restart, or to make another session.
func WithExitWithJob(quiet time.Duration) Option { return func(o *options) { o.exitWithJob = quiet } }

// Intervals at which the tasks are asked: a tenth of the time for which they have to be done, in
// these bounds. The lower one is also the least time for an answer.
const (
	minJobInterval = 20 * time.Millisecond
	minJobTimeout  = 200 * time.Millisecond
)

// lateFactor is how much longer the tasks have to be done if one of them has never answered.
const lateFactor = 10

// doing is what is known about a task that the job has.
type doing int

const (
	silent doing = iota // it does not answer
	gone                // its address refuses connections
	idle                // it has no sessions
	busy                // it has sessions, or does not tell
)

// jobWatch finds out when the job of a cluster is over.
type jobWatch struct {
	tasks []cluster.Task // tasks that are waited for
	quiet time.Duration

	answered map[cluster.Task]bool
	begun    bool      // a task has been busy, or has come and gone
	since    time.Time // start of the time in which all are done; zero if one is not
}

func newJobWatch(spec cluster.Spec, quiet time.Duration) *jobWatch {
	w := &jobWatch{quiet: quiet, answered: map[cluster.Task]bool{}}
	for _, t := range spec.Tasks() {
		if t.Job != psJob {
			w.tasks = append(w.tasks, t)
		}
	}
	return w
}

// interval returns the time between two requests to a task.
func (w *jobWatch) interval() time.Duration {
	return min(max(w.quiet/10, minJobInterval), inspectTimeout)
}

// observe takes what the tasks do, in the order of w.tasks, and reports whether the job is over.
// Otherwise it returns the tasks that are not done.
func (w *jobWatch) observe(now time.Time, tasks []doing) (over bool, undone []cluster.Task) {
	quiet := w.quiet
	for i, t := range w.tasks {
		switch tasks[i] {
		case silent:
			undone = append(undone, t)
		case gone:
			if !w.answered[t] {
				quiet = lateFactor * w.quiet
				break
			}
			w.begun = true
		case idle:
			w.answered[t] = true
		case busy:
			w.answered[t], w.begun = true, true
			undone = append(undone, t)
		}
	}
	if len(undone) > 0 || !w.begun {
		w.since = time.Time{}
		return false, undone
	}
	if w.since.IsZero() {
		w.since = now
	}
	return now.Sub(w.since) >= quiet, nil
}

// awaitJob closes the returned channel when the job is over. It returns nil if the server does not
// wait for the job. The caller must call stop.
func (s *Server) awaitJob() (over <-chan struct{}, stop func()) {
	if s.exitWithJob <= 0 {
		return nil, func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		if s.watchJob(ctx, newJobWatch(s.def.Cluster, s.exitWithJob)) {
			s.log.Info("the job is over, and this task ends with it", "quiet", s.exitWithJob)
			close(done)
		}
	})
	return done, func() {
		cancel()
		watching.Wait()
	}
}

// watchJob returns true when the job is over, and false when ctx ends.
func (s *Server) watchJob(ctx context.Context, w *jobWatch) bool {
	ticker := time.NewTicker(w.interval())
	defer ticker.Stop()
	tasks := make([]doing, len(w.tasks))
	var reported time.Time // of the tasks that are waited for
	for {
		var asking sync.WaitGroup
		for i, t := range w.tasks {
			asking.Go(func() { tasks[i] = s.doing(ctx, t, w.interval()) })
		}
		asking.Wait()
		if ctx.Err() != nil {
			return false
		}
		w.begun = w.begun || s.gate.used()
		over, undone := w.observe(time.Now(), tasks)
		if over {
			return true
		}
		if w.begun && 0 < len(undone) && len(undone) < len(w.tasks) && time.Since(reported) > time.Hour {
			reported = time.Now()
			s.log.Info("some tasks of the job are done; this task waits for the others", "waits_for", names(undone))
		}
		select {
		case <-ctx.Done():
			return false
		case <-ticker.C:
		}
	}
}

func names(tasks []cluster.Task) string {
	out := make([]string, len(tasks))
	for i, t := range tasks {
		out[i] = t.Short()
	}
	return strings.Join(out, ", ")
}

// doing asks a task what it does, and waits for the answer at most for the timeout, or a little
// longer if that is short.
func (s *Server) doing(ctx context.Context, t cluster.Task, timeout time.Duration) doing {
	out := &pb.ClusterTask{}
	var err error
	if t == s.def.Self() {
		out.Info, err = s.inspection.GetTask(ctx, &pb.GetTaskRequest{})
	} else {
		ctx, cancel := context.WithTimeout(ctx, max(timeout, minJobTimeout))
		defer cancel()
		err = s.inspection.askPeer(ctx, t, out)
	}
	switch {
	case err != nil:
		if w, unknown := s.inspection.peers.Worker(t); unknown == nil && hasEnded(w.Failure()) {
			return gone
		}
		return silent
	case out.GetInfo() == nil || len(out.GetInfo().GetSessions()) > 0 || out.GetInfo().GetWorkerSessions() > 0:
		return busy
	}
	return idle
}

// hasEnded reports whether an error of a connection means that no process listens at the address,
// or that the address no longer exists.
func hasEnded(err error) bool {
	if name, ok := errors.AsType[*net.DNSError](err); ok {
		return name.IsNotFound
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}
