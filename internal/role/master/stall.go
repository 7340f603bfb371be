package master

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/status"
)

// When a step hangs, usually one task is at fault, but all its tasks are unfinished: the live ones
// wait for tensors of the one that is stopped. So the master asks all unfinished tasks for their
// status, and names first those that do not answer.

const (
	// probeTimeout bounds the wait for the status of a task when the master logs a stalled step. It
	// exceeds the pauses of a task on an overloaded machine.
	probeTimeout = 2 * time.Second
	// errorProbeTimeout is the same bound when a client waits for the error of a step.
	errorProbeTimeout = 100 * time.Millisecond
	// maxEarly bounds how long before a client's deadline a step ends, so that its error reaches
	// the client in time.
	maxEarly = 500 * time.Millisecond
	// earlyFraction is the same bound as a fraction of the remaining time.
	earlyFraction = 10
)

// connection is a Worker that is reached over a network.
type connection interface {
	// Address returns the address of the task, "host:port".
	Address() string
	// Failure returns the error of the last attempt to connect, or nil.
	Failure() error
	// LastHeard returns the time since the task last answered a call. It reports false if the task
	// has not answered any.
	LastHeard() (ago time.Duration, ok bool)
}

// unfinished is a task whose answer to a call is missing.
type unfinished struct {
	task cluster.Task
	call string // what the master has asked for, such as "RunGraph (3 nodes: a, b, c)"
}

// taskAt returns the name of a task and, if it is reached over a network, its address.
func (s *session) taskAt(task cluster.Task) string { return taskAt(s.workers, task) }

func taskAt(workers Workers, task cluster.Task) string {
	if w, err := workers.Worker(task); err == nil {
		if c, ok := w.(connection); ok {
			return task.String() + " at " + c.Address()
		}
	}
	return task.String()
}

// silence returns the reason why a task does not answer, as far as its connection shows it.
func silence(w Worker) string {
	c, ok := w.(connection)
	if !ok {
		return "it does not answer"
	}
	if err := c.Failure(); err != nil {
		return err.Error()
	}
	if ago, ok := c.LastHeard(); ok {
		return fmt.Sprintf("last heard of %v ago", ago.Round(time.Millisecond))
	}
	return "never heard of"
}

// probe asks tasks for their status concurrently, and returns those that do not answer, with the
// reason. The own task is always alive.
func (s *session) probe(ctx context.Context, tasks []unfinished, timeout time.Duration) map[cluster.Task]string {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var mu sync.Mutex
	silent := map[cluster.Task]string{}
	var wg sync.WaitGroup
	for _, u := range tasks {
		if u.task == s.task {
			continue
		}
		w, err := s.workers.Worker(u.task)
		if err != nil {
			silent[u.task] = err.Error()
			continue
		}
		wg.Go(func() {
			if _, err := w.GetStatus(ctx, &pb.GetStatusRequest{}); err != nil {
				mu.Lock()
				defer mu.Unlock()
				silent[u.task] = silence(w)
			}
		})
	}
	wg.Wait()
	return silent
}

// describe lists the unfinished tasks, the silent ones first. silent is nil if they were not asked.
func (s *session) describe(tasks []unfinished, silent map[cluster.Task]string, timeout time.Duration) string {
	var lines, alive []string
	for _, u := range tasks {
		why, isSilent := silent[u.task]
		switch {
		case isSilent:
			lines = append(lines, fmt.Sprintf("%s: no answer to %s, nor to GetStatus within %v; %s", s.taskAt(u.task), u.call, timeout.Round(time.Millisecond), why))
		case u.task == s.task:
			alive = append(alive, fmt.Sprintf("%v (this task): %s is unfinished", u.task, u.call))
		case silent == nil:
			alive = append(alive, fmt.Sprintf("%s: no answer to %s", s.taskAt(u.task), u.call))
		default:
			alive = append(alive, fmt.Sprintf("%s: no answer to %s; it answers GetStatus", s.taskAt(u.task), u.call))
		}
	}
	return strings.Join(append(lines, alive...), "\n  ")
}

// timedOut returns the error of a request that has reached its deadline while it waited for the
// given tasks.
func (s *session) timedOut(ctx context.Context, what string, tasks []unfinished) error {
	timeout := errorProbeTimeout
	if end, ok := ctx.Deadline(); ok {
		timeout = min(timeout, time.Until(end)*3/4) // the rest is for the way back
	}
	var silent map[cluster.Task]string
	if timeout > 0 {
		silent = s.probe(ctx, tasks, timeout)
	}
	return errTimeout.Annotate(" %s waits for:\n  %s", what, s.describe(tasks, silent, timeout))
}

// taskSet is a set of tasks. It may be used concurrently.
type taskSet struct {
	mu    sync.Mutex
	tasks []cluster.Task // guarded by mu
}

func (s *taskSet) add(t cluster.Task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tasks = append(s.tasks, t)
}

func (s *taskSet) remove(t cluster.Task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tasks = slices.DeleteFunc(s.tasks, func(other cluster.Task) bool { return other == t })
}

func (s *taskSet) list() []cluster.Task {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.tasks)
}

// maxNamed is how many nodes of a task's part of a graph are named in an error.
const maxNamed = 3

// summarize returns the number of nodes of a graph and the names of some. Nodes with state come
// first, because queues and barriers, for which steps wait most often, are among them.
func summarize(g *graph.Graph) string {
	var stateful, others []string
	for n := range g.Nodes() {
		switch {
		case n.Op.Name == "_Send" || n.Op.Name == "_Recv" || n.Op.Name == "_HostRecv" || n.Op.Name == "_HostSend":
		case n.Op.Stateful && len(stateful) < maxNamed:
			stateful = append(stateful, n.Name)
		case len(others) < maxNamed:
			others = append(others, n.Name)
		}
	}
	names := append(stateful, others...)
	if len(names) == 0 {
		return fmt.Sprintf("%d nodes that send and receive tensors", g.NumNodes())
	}
	return fmt.Sprintf("%d nodes, such as %s", g.NumNodes(), strings.Join(names[:min(len(names), maxNamed)], ", "))
}

// timeoutOf returns the error of a request whose context has ended.
func timeoutOf(ctx context.Context, what string) error {
	err := status.FromContext(ctx, what)
	if err == errTimeout {
		return errTimeout.Annotate(" It ended while %s.", what)
	}
	return err
}
