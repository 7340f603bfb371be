// Package testcluster runs the tasks of a cluster in one process and without a network, for tests:
// masters and workers are the real ones and call each other directly. A test can stop and restart
// tasks, and fail, delay or drop any call between two of them.
package testcluster

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/role/master"
	"github.com/weft-ml/weft/internal/role/worker"
	"github.com/weft-ml/weft/internal/runtime/collective"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
)

// The workers of parallel loops live as long as the process. They are started here because those
// that a test starts inside of a synctest bubble would keep it from ending.
var _ = parallel.Threads()

// Options say what a cluster is made of.
type Options struct {
	Jobs            map[string]int   // number of tasks by job
	CPUDevices      int              // of each task; 0 means 1
	Kernels         *kernel.Registry // nil for the default registry
	SessionDefaults *pb.ConfigProto
	SessionTTL      time.Duration
	Log             *slog.Logger // nil for nowhere
}

// Cluster is a set of tasks.
type Cluster struct {
	options Options
	spec    cluster.Spec

	mu          sync.Mutex
	nodes       map[cluster.Task]*Node // guarded by mu; those that run
	interceptor Interceptor            // guarded by mu
	calls       []Call                 // guarded by mu; between two tasks
}

// Node is one life of a task.
type Node struct {
	Task    cluster.Task
	Devices []*kernel.Device
	Worker  *worker.Worker
	Master  *master.Master
	// Placement is what sessions that want it have printed about where their nodes are.
	Placement *Text
}

// Text is a text that grows. It may be written and read concurrently.
type Text struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write adds to the text.
func (t *Text) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.Write(p)
}

// String returns the text so far.
func (t *Text) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.String()
}

// New starts a cluster, which ends with the test.
func New(t testing.TB, options Options) *Cluster {
	t.Helper()
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	if options.Kernels == nil {
		options.Kernels = kernel.Default
	}
	c := &Cluster{options: options, spec: cluster.Spec{}, nodes: map[cluster.Task]*Node{}}
	for job, n := range options.Jobs {
		c.spec[job] = cluster.Job{}
		for i := range n {
			c.spec[job][i] = job + strconv.Itoa(i) + ".test:1"
		}
	}
	for _, task := range c.spec.Tasks() {
		c.Start(task.Job, task.Index)
	}
	t.Cleanup(func() {
		for _, task := range c.spec.Tasks() {
			c.Stop(task.Job, task.Index)
		}
	})
	return c
}

// Spec returns the tasks and the addresses under which sessions that bring their own cluster find
// them.
func (c *Cluster) Spec() cluster.Spec { return c.spec }

// Start starts a task that does not run, with an incarnation of its own.
func (c *Cluster) Start(job string, index int) *Node {
	n := &Node{Task: cluster.Task{Job: job, Index: index}, Placement: &Text{}}
	incarnation := rand.Uint64() | 1
	for i := range max(c.options.CPUDevices, 1) {
		n.Devices = append(n.Devices, &kernel.Device{
			Name: n.Task.String() + "/device:CPU:" + strconv.Itoa(i), Type: kernel.CPU,
			Incarnation: incarnation + 2*uint64(i), MemoryLimit: 1 << 28, Resources: kernel.NewResources(job),
		})
	}
	sequences := collective.NewSequences()
	n.Worker = worker.New(worker.Config{
		Sequences: sequences, Leader: c.options.SessionDefaults.GetExperimental().GetCollectiveGroupLeader(),
		CacheResponses: c.options.SessionDefaults.GetRpcOptions().GetCacheRpcResponse(),
		Task:           n.Task, Devices: n.Devices, Kernels: c.options.Kernels, Log: c.options.Log, Peers: &view{c, n.Task, n, nil},
		Connect: func(spec cluster.Spec, self cluster.Task) (worker.Peers, error) { return &view{c, self, n, spec}, nil },
	})
	n.Master = master.New(master.Config{
		Sequences: sequences,
		Task:      n.Task, Kernels: c.options.Kernels, Log: c.options.Log, Workers: &view{c, n.Task, n, nil},
		Connect: func(spec cluster.Spec, self cluster.Task) (master.Workers, error) {
			return &view{c, self, n, spec}, nil
		},
		SessionDefaults: c.options.SessionDefaults, SessionTTL: c.options.SessionTTL, Placement: n.Placement,
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nodes[n.Task] = n
	return n
}

// Stop ends a task, if it runs: calls to it fail, and what it was doing is cancelled.
func (c *Cluster) Stop(job string, index int) {
	task := cluster.Task{Job: job, Index: index}
	c.mu.Lock()
	n := c.nodes[task]
	delete(c.nodes, task)
	c.mu.Unlock()
	if n == nil {
		return
	}
	n.Worker.Close()
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	n.Master.Close(gone)
}

// Restart ends a task and starts it anew.
func (c *Cluster) Restart(job string, index int) *Node {
	c.Stop(job, index)
	return c.Start(job, index)
}

// Node returns a task that runs, or nil.
func (c *Cluster) Node(job string, index int) *Node {
	return c.node(cluster.Task{Job: job, Index: index})
}

func (c *Cluster) node(task cluster.Task) *Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.nodes[task]
}

func unavailable(task cluster.Task) error {
	return status.Unavailablef("failed to connect to all addresses; last error: %v does not run", task)
}
