// Package testcluster runs the tasks of a cluster in one process and without a network, for tests.
// Masters and workers are the real ones and call each other directly. A test can stop and restart
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
	gpu "github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/role/master"
	"github.com/weft-ml/weft/internal/role/peer"
	"github.com/weft-ml/weft/internal/role/quota"
	"github.com/weft-ml/weft/internal/role/worker"
	"github.com/weft-ml/weft/internal/runtime/collective"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
)

// Starts the worker goroutines of parallel loops, which live as long as the process. A synctest
// bubble in which they were started could not end.
var _ = parallel.Threads()

// Options describe a cluster.
type Options struct {
	Jobs            map[string]int   // number of tasks by job
	CPUDevices      int              // number per task; 0 means 1
	GPUs            []*gpu.Device    // GPU devices of each task; the tasks share them
	Kernels         *kernel.Registry // nil for the default registry
	SessionDefaults *pb.ConfigProto
	SessionTTL      time.Duration
	Quota           quota.Limits                  // of each task
	OrphanTimeout   time.Duration                 // of sessions on workers; 0 for none
	Releases        map[cluster.Task]peer.Release // of TensorFlow that tasks stand in for
	Log             *slog.Logger                  // nil discards the log
}

// Cluster is a set of tasks.
type Cluster struct {
	options Options
	spec    cluster.Spec

	mu          sync.Mutex
	nodes       map[cluster.Task]*Node // running tasks; guarded by mu
	interceptor Interceptor            // guarded by mu
	calls       []Call                 // calls between two tasks; guarded by mu
}

// Node is a running task. A restarted task is a new Node.
type Node struct {
	Task    cluster.Task
	Devices []*kernel.Device
	Worker  *worker.Worker
	Master  *master.Master
	// Placement is the log of node placements of the sessions that requested it.
	Placement *Text
}

// Text is a growing text. It is safe for concurrent use.
type Text struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write appends to the text.
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

// New starts a cluster. It is stopped at the end of the test.
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

// Spec returns the tasks and their addresses, for sessions with a cluster of their own.
func (c *Cluster) Spec() cluster.Spec { return c.spec }

// Start starts a stopped task with a new incarnation.
func (c *Cluster) Start(job string, index int) *Node {
	n := &Node{Task: cluster.Task{Job: job, Index: index}, Placement: &Text{}}
	incarnation := rand.Uint64() | 1
	for i := range max(c.options.CPUDevices, 1) {
		n.Devices = append(n.Devices, &kernel.Device{
			Name: n.Task.String() + "/device:CPU:" + strconv.Itoa(i), Type: kernel.CPU,
			Incarnation: incarnation + 2*uint64(i), MemoryLimit: 1 << 28, Resources: kernel.NewResources(job),
		})
	}
	for i, g := range c.options.GPUs {
		n.Devices = append(n.Devices, &kernel.Device{
			Name: n.Task.String() + "/device:GPU:" + strconv.Itoa(i), Type: kernel.GPU, GPU: g,
			Incarnation: incarnation + 1000 + 2*uint64(i), MemoryLimit: g.Limit(), Resources: kernel.NewResources(job),
		})
	}
	sequences := collective.NewSequences()
	n.Worker = worker.New(worker.Config{
		Sequences: sequences, Leader: c.options.SessionDefaults.GetExperimental().GetCollectiveGroupLeader(),
		CacheResponses: c.options.SessionDefaults.GetRpcOptions().GetCacheRpcResponse(),
		OrphanTimeout:  c.options.OrphanTimeout,
		Task:           n.Task, Devices: n.Devices, Kernels: c.options.Kernels, Log: c.options.Log, Peers: &view{c, n.Task, n, nil},
		Connect: func(spec cluster.Spec, self cluster.Task) (worker.Peers, error) { return &view{c, self, n, spec}, nil },
	})
	n.Master = master.New(master.Config{
		Sequences: sequences,
		Task:      n.Task, Kernels: c.options.Kernels, Log: c.options.Log, Workers: &view{c, n.Task, n, nil},
		Connect: func(spec cluster.Spec, self cluster.Task) (master.Workers, error) {
			return &view{c, self, n, spec}, nil
		},
		SessionDefaults: c.options.SessionDefaults, SessionTTL: c.options.SessionTTL, Quota: quota.New(c.options.Quota), Placement: n.Placement,
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nodes[n.Task] = n
	return n
}

// Stop stops a task, if it is running: calls to it fail, and its work is cancelled.
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

// Restart stops a task and starts it again.
func (c *Cluster) Restart(job string, index int) *Node {
	c.Stop(job, index)
	return c.Start(job, index)
}

// Node returns a running task, or nil.
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
