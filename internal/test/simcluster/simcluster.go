// Package simcluster is a cluster of thousands of tasks in virtual time: the masters are the real
// ones, and what they ask of tasks takes the time that a model says. It shows how the work of a
// master grows with its cluster, without a network and without the machines.
//
// It is meant for bubbles of testing/synctest, in which sleeping takes no time and the clock is
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

// Model says how long things take.
type Model struct {
	Latency time.Duration // of a message from one machine to another
	Send    time.Duration // of processor time that a call costs the task that makes it
	Serve   time.Duration // of processor time that a call costs the task that answers it
	Compute time.Duration // that a task works in a step, beside what calls cost
	Cores   int           // of every task
}

// Cluster is a set of simulated tasks.
type Cluster struct {
	Model Model
	// Relays is the number of tasks that pass calls on to the rest of the cluster, each to an equal
	// part of it. Masters know the relays alone. With 0, masters call every task themselves.
	Relays int

	spec  cluster.Spec
	tasks []cluster.Task
	nodes map[cluster.Task]*node

	mu     sync.Mutex
	counts Counts // guarded by mu
}

// Counts is what masters and relays have asked of tasks.
type Counts struct {
	Calls map[string]int // by method
	Bytes int            // of all requests
}

// node is one simulated task.
type node struct {
	processor processor
	members   []*node // that it passes calls on to
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

// Master starts the master of a task. It sees the given tasks of the cluster, all of them if none
// are given, and its own. The caller must close it.
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

// Take returns what was asked of tasks since the last call.
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

// pass lets virtual time pass: the simulation runs in a bubble of testing/synctest.
func pass(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // nobody waits in truth
}

// call lets the time of a call pass: until the caller has sent it, until it has come, been answered
// by the task and all it passes the call on to, and until the answer is back.
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

// processor is the cores of one task, which do one thing after the other.
type processor struct {
	mu   sync.Mutex
	free []time.Time // guarded by mu; when each core has nothing more to do
}

func newProcessor(cores int) processor { return processor{free: make([]time.Time, max(cores, 1))} }

// use waits for the core that is free first and uses it for some time.
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
