// Package executor runs the part of a graph that is placed on one device.
//
// [New] compiles a graph to arrays. For each node they hold its kernel, the slots of its inputs and
// its outgoing edges. For each loop (a "frame") they hold the layout of the state that one
// iteration needs. [Executor.Run] runs one step on pooled state, so a node costs no allocation by
// the executor.
//
// # Readiness
//
// A node is ready when all its inputs, data and control, have arrived. An input may be dead: it
// comes from the branch of a Switch that was not taken. A node with a dead input is not executed
// and its outputs are dead. There are three exceptions:
//
//   - Merge takes its first live input. It is dead only if all its inputs are dead.
//   - ControlTrigger is never dead.
//   - Nodes that send to or receive from other devices run when dead, to notify the other side.
//
// The run is over when no node is ready or in flight.
//
// # Ownership
//
// The simple design lets all threads of a pool execute ready nodes, with a lock or atomic counts
// for the inputs that have arrived. TensorFlow does that. A node of a chain of additions takes
// 1,047 ns there and 232 ns here (medians, docs/performance.md): synchronization and thread
// wake-ups cost more than small kernels.
//
// Here at most one goroutine owns the state of a run at any time. Only the owner reads or changes
// counts, values, frames and the stack of ready nodes, without locks or atomics. The protocol is:
//
//   - The owner executes cheap nodes itself.
//   - Work that may take long runs outside of the ownership, as a [task]. An asynchronous kernel
//     calls back when it is done. An expensive kernel goes to the run queue, from which helper
//     goroutines take tasks while cores are idle.
//   - A finished task is pushed to the completion queue of the run. A goroutine that pushes to the
//     queue of a run without an owner becomes the owner.
//   - The owner gives up the ownership when it has nothing left to do, or before it executes an
//     expensive kernel itself while other tasks are in flight.
//
// # Fused regions
//
// When the execution times of all nodes are known, cheap nodes whose outputs have no other
// consumers are fused to regions. A [region] runs as one node. No inputs are counted within a
// region, and a region is worth a helper goroutine where a single cheap node is not. A run that
// collects statistics executes the graph without regions.
//
// # Loops
//
// Enter, Exit and NextIteration move values between frames and iterations. The first value that
// enters a frame from one iteration of its parent creates an instance of the frame. The instance
// ends when all Enter nodes have delivered and all its iterations are over. Iterations end in
// order. Their state is recycled within a run.
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

// Config holds what an executor needs besides its graph.
type Config struct {
	Device *kernel.Device
	// NewKernel returns the kernel of a node. It is called once for each node except for control
	// flow, constants, arguments and results, which the executor handles itself. The executor does
	// not close kernels.
	NewKernel func(*graph.Node) (kernel.Kernel, error)
	// Memory returns the memory of the inputs and outputs of a node. It is nil for a device without
	// memory of its own. The graph has no edge between two kinds of memory.
	Memory func(*graph.Node) kernel.Memory
	// FrameIDs is how the tasks of the graph compute the IDs of frames.
	FrameIDs FrameIDs
	// Log receives the stack of a kernel that panics; nil discards it.
	Log *slog.Logger
}

// RunOptions are the options of one run.
type RunOptions struct {
	// Args are the values of the _Arg nodes by index. The run takes over their references and
	// clears Args, so the first consumer of a value can modify it in place. An argument has at most
	// one _Arg node.
	Args []tensor.Tensor
	// Rets receives the values of the _Retval nodes by index, with their references. Dead results
	// have no value. After an error any result may be missing.
	Rets []tensor.Tensor
	// Depth is the number of function calls that the run is nested in.
	Depth int
	// Stats receives the statistics of every executed node; nil collects none.
	Stats Collector
}

// Executor runs one graph on one device. It is safe for concurrent use: any number of runs may be
// in progress.
type Executor struct {
	device *kernel.Device
	log    *slog.Logger
	ids    FrameIDs
	plain  program                 // the graph without regions
	runs   atomic.Int32            // runs without an error, up to runsBeforeFusion
	fused  atomic.Pointer[program] // nil before fusion, and where fusion does not pay
}

// program is a compiled graph.
type program struct {
	e      *Executor
	nodes  []node
	frames []*frameInfo // frames[0] is the root
	roots  []*node      // nodes without inputs, in start order

	spare atomic.Pointer[run] // state of the run that ended last
	pool  sync.Pool           // of *run; state of earlier runs
}

// New compiles a graph. It does not keep the graph. Every input of every node must be connected.
func New(g *graph.Graph, cfg Config) (*Executor, error) {
	e := &Executor{device: cfg.Device, log: cfg.Log, ids: cfg.FrameIDs}
	if e.log == nil {
		e.log = slog.New(slog.DiscardHandler)
	}
	e.plain.e = e
	if err := e.plain.compile(g, cfg.NewKernel); err != nil {
		return nil, err
	}
	if cfg.Memory != nil {
		if err := e.plain.useMemory(g, cfg.Memory); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// NumNodes returns the number of nodes of the graph.
func (e *Executor) NumNodes() int { return len(e.plain.nodes) }

// Run runs the graph as part of a step and waits for it. It returns the first error of a node,
// annotated with the node's name. By then Run has called step.Cancel with that error.
//
// When the step's context ends, no further node is started, and Run returns after the kernels in
// flight have returned. The code that ends the context must also abort the step's rendezvous,
// because kernels may wait there.
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

// RunAsync is [Executor.Run] without the wait. It returns when all remaining work waits for
// asynchronous kernels or runs on other goroutines. It calls done once, on this goroutine or
// another.
func (e *Executor) RunAsync(step *kernel.Step, opts RunOptions, done func(error)) {
	r := e.begin(step, opts)
	r.done = done
	if opts.Depth > 0 { // called by a node: this goroutine is counted already
		r.runHelper(true)
		return
	}
	parallel.Acquire()
	r.runHelper(true)
	parallel.Release()
}
