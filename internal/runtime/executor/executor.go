// Package executor runs the part of a graph that is on one device.
//
// [New] compiles a graph to arrays: for each node its kernel, where its inputs lie, and its
// outgoing edges; for each loop ("frame") the layout of the state that one iteration needs.
// [Executor.Run] then runs one step, on state that is taken from a pool and given back, so that a
// node costs no allocation of ours.
//
// # Readiness
//
// A node is ready when all its inputs, data and control, have arrived. An input may be dead: it
// lies on the branch of a Switch that was not taken. A node with a dead input is not executed and
// its outputs are dead, except for Merge, which takes its first live input and is dead only if all
// are, for ControlTrigger, which is never dead, and for nodes that send to or receive from other
// devices, which tell the other side. The step is over when nothing is ready or under way.
//
// # Ownership
//
// At any time at most one goroutine owns the state of a run, and only the owner reads or changes
// it: counts, values, frames and the stack of ready nodes need no lock and no atomic. The owner
// runs cheap nodes itself. What takes long runs outside of the ownership, as a [task]: kernels that
// wait for others call back when they are done, and expensive kernels go to goroutines of their own
// as long as cores are idle. A finished task is pushed to the run's inbox. Whoever pushes to the
// inbox of a run that nobody owns becomes its owner. The owner gives up the ownership when nothing
// is left to do, or before it runs an expensive kernel itself while other tasks are under way.
//
// # Regions
//
// Once the times of all nodes are known, cheap nodes that nobody else looks into are fused to
// regions, which run as one node: nothing is counted within a region, and a core that is idle can take
// a region where a cheap node would not be worth it. A run that collects statistics executes the
// graph as it was compiled.
//
// # Loops
//
// Enter, Exit and NextIteration move values between frames and iterations. An instance of a frame
// is made by the first value that enters it, from one iteration of its parent; it ends when all
// Enter nodes have delivered and all its iterations are over, which happens in order. State of
// iterations is recycled within a run.
package executor

import (
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/tensor"
)

// Config is what an executor needs besides its graph.
type Config struct {
	Device *kernel.Device
	// NewKernel returns the kernel of a node. It is called once for each node but those of control
	// flow, constants and arguments, which the executor handles itself. The executor does not close
	// kernels.
	NewKernel func(*graph.Node) (kernel.Kernel, error)
	// Log gets the stack of a kernel that panics; nil for nowhere.
	Log *slog.Logger
}

// RunOptions are the options of one run.
type RunOptions struct {
	// Args are the values of the _Arg nodes by index. The run takes over their references and
	// clears Args, so that the first to use a value can do so in place. It takes each once: there
	// is one _Arg node for it at most.
	Args []tensor.Tensor
	// Rets receives the values of the _Retval nodes by index, with their references. Those that are
	// dead, and some after an error, are missing.
	Rets []tensor.Tensor
	// Depth is how many function calls the run is nested in.
	Depth int
	// Stats is told about every node that was executed; nil for no statistics.
	Stats Collector
}

// Executor runs one graph on one device, any number of times and concurrently.
type Executor struct {
	device *kernel.Device
	log    *slog.Logger
	plain  program
	runs   atomic.Int32            // that have ended without an error, up to runsBeforeFusion
	fused  atomic.Pointer[program] // nil before that, and where it does not pay
}

// program is a compiled graph.
type program struct {
	e      *Executor
	nodes  []node
	frames []*frameInfo // the first is the root
	roots  []*node      // nodes without inputs, in the order in which they are started

	spare atomic.Pointer[run] // the state of the run that ended last
	pool  sync.Pool           // of *run: more of it
}

// New compiles a graph, which it does not keep. Every node must be connected and have a kernel.
func New(g *graph.Graph, cfg Config) (*Executor, error) {
	e := &Executor{device: cfg.Device, log: cfg.Log}
	if e.log == nil {
		e.log = slog.New(slog.DiscardHandler)
	}
	e.plain.e = e
	if err := e.plain.compile(g, cfg.NewKernel); err != nil {
		return nil, err
	}
	return e, nil
}

// NumNodes returns the number of nodes.
func (e *Executor) NumNodes() int { return len(e.plain.nodes) }

// Run runs the graph as part of a step and waits for it. The error is the first that a node had,
// with the node's name; it has ended the rest of the step through step.Cancel by then. When the
// step's context ends, no further node is started and Run returns as soon as the kernels that are
// under way do; whoever ends the context aborts the rendezvous as well.
func (e *Executor) Run(step *kernel.Step, opts RunOptions) error {
	parallel.Acquire()
	r := e.begin(step, opts)
	over := r.work(true)
	for !over {
		over = r.park() || r.work(true)
	}
	parallel.Release()
	err := r.result()
	r.unref(2)
	return err
}

// RunAsync is Run without the wait: it returns as soon as nothing is left that can be done without
// waiting. done is called once, on this goroutine or another.
func (e *Executor) RunAsync(step *kernel.Step, opts RunOptions, done func(error)) {
	r := e.begin(step, opts)
	r.done = done
	if opts.Depth > 0 { // called by a node: this goroutine has been counted
		r.runHelper(true)
		return
	}
	parallel.Acquire()
	r.runHelper(true)
	parallel.Release()
}
