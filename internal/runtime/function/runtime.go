// Package function runs the functions of a graph's library: the bodies of calls, branches and
// loops.
//
// A [Runtime] belongs to one registered graph on one device. It creates the kernels of nodes,
// including those that call functions, and implements kernel.Functions for them. A function is
// prepared at its first call: its body is instantiated, pruned and compiled for an executor, once
// per set of attributes. A call executes the body on the goroutine of the caller up to the first
// wait. The body is part of the caller's step and uses its cancellation, rendezvous and resources.
//
// A function whose nodes request several devices is lowered, placed and split like a graph. Its
// parts on this task run concurrently and exchange tensors in a rendezvous of the call. Parts on
// other tasks are registered there, with nodes that receive their arguments and send their results.
// They run in a separate step for each call, so several calls of one function can be in progress in
// a step.
package function

import (
	"log/slog"
	"sync"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/opkit/ophistory"
	"github.com/weft-ml/weft/internal/pass/partition"
	"github.com/weft-ml/weft/internal/runtime/executor"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
)

// maxDepth bounds the nesting of calls. A function with endless recursion fails before it exhausts
// memory.
const maxDepth = 2000

// Config holds what a runtime needs besides a library.
type Config struct {
	Device *kernel.Device
	// Devices are all devices of the task, including Device; nil if there is no other.
	Devices []*kernel.Device
	// Cluster runs parts of functions on other tasks; nil if there are none.
	Cluster Cluster
	// WholeParts says that Cluster takes graphs with _Arg and _Retval nodes.
	WholeParts bool
	// Kernels is the registry of kernels and operations; nil for kernel.Default.
	Kernels *kernel.Registry
	// GraphVersion is the producer version of the graph, in TensorFlow's numbering.
	GraphVersion int
	// Log receives the stacks of kernels that panic; nil discards them.
	Log *slog.Logger
}

// Runtime creates kernels and runs functions. It is safe for concurrent use.
type Runtime struct {
	lib     *graph.Library
	kernels *kernel.Registry
	device  *kernel.Device
	log     *slog.Logger
	set     *runtimeSet

	mu        sync.Mutex
	functions map[string]kernel.Function // by kind, name and attributes; guarded by mu
	closers   []kernel.Closer            // kernels of bodies with a Close method; guarded by mu
	closed    bool                       // guarded by mu
}

// NewRuntime returns a runtime for the functions of lib. Functions may be added to lib later.
func NewRuntime(lib *graph.Library, cfg Config) *Runtime {
	if cfg.Kernels == nil {
		cfg.Kernels = kernel.Default
	}
	if cfg.Devices == nil {
		cfg.Devices = []*kernel.Device{cfg.Device}
	}
	f := &runtimeSet{lib: lib, cfg: cfg, members: map[*kernel.Device]*Runtime{}}
	return f.onDevice(cfg.Device)
}

// NewKernel creates the kernel of a node. If the operation of the node is a function of the
// library, the kernel calls it.
func (r *Runtime) NewKernel(n *graph.Node) (kernel.Kernel, error) {
	c := &kernel.Construction{
		Node: n.Name, Op: n.Op, Attrs: n.Attrs, Inputs: n.InTypes, Outputs: n.OutTypes, Device: r.device, Functions: r,
		GraphVersion: r.set.cfg.GraphVersion, InputNode: func(i int) string { return n.Input(i).Node.Name },
	}
	op := n.Op.Name
	if _, ok := r.lib.Lookup(op); ok {
		c.Attrs = opdef.Attrs{"f": opdef.Func{Name: op, Attrs: n.Attrs}}
		c.Functions = confined{r}
		op = "StatefulPartitionedCall"
	}
	if err := ophistory.CheckAvailable(op, c.GraphVersion); err != nil {
		return nil, err
	}
	if err := r.device.Policy.Check(n.Name, n.Op); err != nil {
		return nil, err
	}
	impl := r.kernels.Find(op, r.device.Type, c.Attrs)
	if impl == nil {
		return nil, status.NotFoundf("No registered '%s' OpKernel for '%s' devices compatible with node {{node %s}}",
			op, r.device.Type, n.Name)
	}
	return impl.New(c)
}

// confined is the runtime for nodes whose operation is a function. The whole function runs on the
// device of the node.
type confined struct{ *Runtime }

// InstantiateAcross implements kernel.Functions.
func (c confined) InstantiateAcross(fn opdef.Func) (kernel.Function, error) { return c.Instantiate(fn) }

// Instantiate implements kernel.Functions.
func (r *Runtime) Instantiate(fn opdef.Func) (kernel.Function, error) {
	return r.cached(fn, "", func(op *opdef.Op) kernel.Function {
		return &function{runtime: r, fn: fn, op: op, body: func() (*graph.Body, error) { return r.instantiate(fn) }}
	})
}

// InstantiateAcross implements kernel.Functions.
func (r *Runtime) InstantiateAcross(fn opdef.Func) (kernel.Function, error) {
	return r.cached(fn, "across", func(op *opdef.Op) kernel.Function {
		return &multiDevice{runtime: r, fn: fn, op: op, bound: map[string]kernel.Function{}}
	})
}

// cached returns the function of a kind and attributes. It is created at the first request.
func (r *Runtime) cached(fn opdef.Func, kind string, create func(*opdef.Op) kernel.Function) (kernel.Function, error) {
	sig, err := r.signature(fn.Name)
	if err != nil {
		return nil, err
	}
	key := kind + " " + fn.Key()
	r.mu.Lock()
	defer r.mu.Unlock()
	if have := r.functions[key]; have != nil {
		return have, nil
	}
	made := create(sig)
	r.functions[key] = made
	return made, nil
}

func (r *Runtime) signature(name string) (*opdef.Op, error) {
	if f, ok := r.lib.Lookup(name); ok {
		return &f.Def.Signature, nil
	}
	if name == symbolicGradient {
		if sig, ok := r.kernels.LookupOp(name); ok {
			return sig, nil
		}
	}
	return nil, status.NotFoundf("Function %s is not defined.", name)
}

// compile creates the executor of a body, or of the part of a body on this device.
func (r *Runtime) compile(fn opdef.Func, g *graph.Graph) (*executor.Executor, error) {
	e, err := r.Compile(g)
	if err != nil {
		return nil, status.Errorf(status.CodeOf(err), "In function %s: %w", fn.Name, err)
	}
	return e, nil
}

// Compile returns the executor of a graph on the device of the runtime, which closes its kernels.
// On a device with memory of its own it adds copies to the graph.
func (r *Runtime) Compile(g *graph.Graph) (*executor.Executor, error) {
	cfg := executor.Config{Device: r.device, NewKernel: r.newBodyKernel, Log: r.log}
	if r.device.GPU != nil {
		cfg.Memory = func(n *graph.Node) kernel.Memory { return partition.NodeMemory(r.kernels, n) }
		if err := partition.EnsureMemory(g, r.kernels, namer(g)); err != nil {
			return nil, err
		}
	}
	return executor.New(g, cfg)
}

// newBodyKernel creates a kernel of a body. The runtime closes it.
func (r *Runtime) newBodyKernel(n *graph.Node) (kernel.Kernel, error) {
	k, err := r.NewKernel(n)
	c, ok := k.(kernel.Closer)
	if err != nil || !ok {
		return k, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		c.Close()
		return nil, status.Cancelledf("The graph of node {{node %s}} has been dropped", n.Name)
	}
	r.closers = append(r.closers, c)
	return k, nil
}

// Close closes the kernels of all bodies and deregisters the parts of functions from other tasks.
// No call may be in progress.
func (r *Runtime) Close() { r.set.close() }

func (r *Runtime) closeKernels() {
	r.mu.Lock()
	closers := r.closers
	r.closers, r.closed = nil, true
	r.mu.Unlock()
	for _, c := range closers {
		c.Close()
	}
}
