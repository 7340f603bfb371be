// Package simcluster simulates a cluster of thousands of tasks in virtual time. The masters are the
// real ones. Calls to tasks take the time of a model. It shows how the work of a master grows with
// its cluster, without a network and without the machines.
//
// It must run in bubbles of testing/synctest, in which sleeping takes no real time and the clock is
// exact.
package simcluster

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/internal/role/master"
	"github.com/weft-ml/weft/internal/runtime/collective"
	"github.com/weft-ml/weft/kernel"
)

// Model holds the times of the simulation.
type Model struct {
	Latency time.Duration // of a message between machines
	Send    time.Duration // CPU time of a call on the task that makes it
	Serve   time.Duration // CPU time of a call on the task that answers it
	Compute time.Duration // time that a task computes per step, besides calls
	Cores   int           // of every task
}

// Cluster is a set of simulated tasks.
type Cluster struct {
	Model Model
	// Relays is the number of tasks that forward calls to the rest of the cluster, each to an equal
	// part of it. Masters know the relays only. With 0, masters call every task directly.
	Relays int

	spec  cluster.Spec
	tasks []cluster.Task
	nodes map[cluster.Task]*node

	mu     sync.Mutex
	counts Counts // guarded by mu
}

// Counts counts the calls of masters and relays.
type Counts struct {
	Calls map[string]int // by method
	Bytes int            // of all requests
}

// node is one simulated task.
type node struct {
	processor processor
	members   []*node // tasks that it forwards calls to
}

// New returns a cluster with the given number of tasks by job. If relays is not 0, the job "relay"
// is added, and masters see only that and the task they are on.
func New(model Model, jobs map[string]int, relays int) *Cluster {
	c := &Cluster{Model: model, Relays: relays, spec: cluster.Spec{}, nodes: map[cluster.Task]*node{}}
	c.counts.Calls = map[string]int{}
	for job, n := range jobs {
		c.spec[job] = cluster.Job{}
		for i := range n {
			c.spec[job][i] = "simulated:1"
		}
	}
	members := c.spec.Tasks()
	for _, t := range members {
		c.nodes[t] = &node{processor: newProcessor(model.Cores)}
	}
	c.tasks = members
	if relays > 0 {
		c.tasks = nil
		for i := range relays {
			t := cluster.Task{Job: "relay", Index: i}
			c.tasks = append(c.tasks, t)
			c.nodes[t] = &node{processor: newProcessor(model.Cores)}
		}
		for i, t := range members {
			relay := c.nodes[c.tasks[i%relays]]
			relay.members = append(relay.members, c.nodes[t])
		}
	}
	return c
}

// Master starts the master of a task. The master sees the given tasks, or all tasks if none are
// given, and its own. The caller must close it.
func (c *Cluster) Master(self cluster.Task, sees ...cluster.Task) *master.Master {
	if len(sees) == 0 {
		sees = c.tasks
	}
	v := &view{cluster: c, self: self, tasks: sees}
	return master.New(master.Config{
		Task: self, Workers: v, Kernels: kernel.Default, Sequences: collective.NewSequences(), Placement: io.Discard,
		Log: slog.New(slog.DiscardHandler),
	})
}

// Take returns the counts since the previous call, and resets them.
func (c *Cluster) Take() Counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := c.counts
	c.counts = Counts{Calls: map[string]int{}}
	return out
}

func (c *Cluster) count(method string, req proto.Message) {
	size := 0
	if req != nil {
		size = proto.Size(req)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts.Calls[method]++
	c.counts.Bytes += size
}

// pass advances the virtual time: the simulation runs in a bubble of testing/synctest.
func pass(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // virtual time
}

// call advances the virtual time by the duration of a call: sending it, answering it on the task
// and on all tasks that it is forwarded to, and returning the answer.
func (c *Cluster) call(ctx context.Context, method string, req proto.Message, from, to *node, work time.Duration) error {
	c.count(method, req)
	if from != to {
		from.processor.use(c.Model.Send)
		pass(c.Model.Latency)
	}
	to.processor.use(c.Model.Serve)
	var wg sync.WaitGroup
	for _, member := range to.members {
		wg.Go(func() { _ = c.call(ctx, method, req, to, member, work) })
	}
	pass(work)
	wg.Wait()
	if from != to {
		pass(c.Model.Latency)
	}
	return ctx.Err()
}

// processor models the cores of a task. Each core does one thing at a time.
type processor struct {
	mu   sync.Mutex
	free []time.Time // times at which the cores become idle; guarded by mu
}

func newProcessor(cores int) processor { return processor{free: make([]time.Time, max(cores, 1))} }

// use occupies the core that becomes idle first for a duration.
func (p *processor) use(d time.Duration) {
	p.mu.Lock()
	now, first := time.Now(), 0
	for i, at := range p.free {
		if at.Before(p.free[first]) {
			first = i
		}
	}
	if p.free[first].Before(now) {
		p.free[first] = now
	}
	p.free[first] = p.free[first].Add(d)
	end := p.free[first]
	p.mu.Unlock()
	pass(end.Sub(now))
}
