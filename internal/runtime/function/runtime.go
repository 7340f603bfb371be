// Package function runs the functions of a graph's library: the bodies of calls, branches and
// loops.
//
// A [Runtime] belongs to one registered graph on one device. It makes the kernels of nodes, those
// that call functions among them, and implements kernel.Functions for these. A function is prepared
// at its first call: its body is instantiated, pruned and compiled for an executor, once for each
// set of attributes. A call runs the body on the goroutine of the caller as far as that is possible
// without waiting, as part of the caller's step: with its cancellation, rendezvous and resources.
//
// A function whose nodes ask for several devices is lowered, placed and split like a graph. Its
// parts on this task run side by side and exchange tensors in a rendezvous of the call. Parts on
// other tasks are registered there, with nodes that receive their arguments and send their results,
// and run as a step of its own, which belongs to the call alone: so several calls of one function
// can be under way in a step.
package function

import (
	"log/slog"
	"sync"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/runtime/executor"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
)

// maxDepth bounds how deep calls nest. A function that calls itself for ever ends with an error
// before it has used up memory.
const maxDepth = 2000

// Config is what a runtime needs besides a library.
type Config struct {
	Device *kernel.Device
	// Devices are the devices of the task, with Device among them; nil if there is no other.
	Devices []*kernel.Device
	// Cluster reaches other tasks; nil if there is none.
	Cluster Cluster
	// Kernels is where kernels and operations are looked up; nil for kernel.Default.
	Kernels *kernel.Registry
	// GraphVersion is the version of TensorFlow's graphs that the graph was made for.
	GraphVersion int
	// Log gets the stacks of kernels that panic; nil for nowhere.
	Log *slog.Logger
}

// Runtime makes kernels and runs functions. It is safe for concurrent use.
type Runtime struct {
	lib     *graph.Library
	kernels *kernel.Registry
	device  *kernel.Device
	log     *slog.Logger
	family  *family

	mu        sync.Mutex
	functions map[string]kernel.Function // guarded by mu; by kind, name and attributes
	closers   []kernel.Closer            // guarded by mu; kernels of bodies that hold something
	closed    bool                       // guarded by mu
}

// NewRuntime returns a runtime for the functions of lib, which may grow.
func NewRuntime(lib *graph.Library, cfg Config) *Runtime {
	if cfg.Kernels == nil {
		cfg.Kernels = kernel.Default
	}
	if cfg.Devices == nil {
		cfg.Devices = []*kernel.Device{cfg.Device}
	}
	f := &family{lib: lib, cfg: cfg, members: map[*kernel.Device]*Runtime{}}
	return f.on(cfg.Device)
}

// NewKernel makes the kernel of a node. A node whose operation is a function of the library calls
// it.
func (r *Runtime) NewKernel(n *graph.Node) (kernel.Kernel, error) {
	c := &kernel.Construction{
		Node: n.Name, Op: n.Op, Attrs: n.Attrs, Inputs: n.InTypes, Outputs: n.OutTypes, Device: r.device, Functions: r,
		GraphVersion: r.family.cfg.GraphVersion, InputNode: func(i int) string { return n.Input(i).Node.Name },
	}
	op := n.Op.Name
	if _, ok := r.lib.Lookup(op); ok {
		c.Attrs = opdef.Attrs{"f": opdef.Func{Name: op, Attrs: n.Attrs}}
		c.Functions = confined{r}
		op = "StatefulPartitionedCall"
	}
	impl := r.kernels.Find(op, r.device.Type, c.Attrs)
	if impl == nil {
		return nil, status.NotFoundf("No registered '%s' OpKernel for '%s' devices compatible with node {{node %s}}",
			op, r.device.Type, n.Name)
	}
	return impl.New(c)
}

// confined is a runtime for nodes whose operation is a function: all of it runs on the device of
// the node.
type confined struct{ *Runtime }

// InstantiateAcross implements kernel.Functions.
func (c confined) InstantiateAcross(fn opdef.Func) (kernel.Function, error) { return c.Instantiate(fn) }

// Instantiate implements kernel.Functions.
func (r *Runtime) Instantiate(fn opdef.Func) (kernel.Function, error) {
	return r.remember(fn, "", func(op *opdef.Op) kernel.Function {
		return &function{runtime: r, fn: fn, op: op, body: func() (*graph.Body, error) { return r.instantiate(fn) }}
	})
}

// InstantiateAcross implements kernel.Functions.
func (r *Runtime) InstantiateAcross(fn opdef.Func) (kernel.Function, error) {
	return r.remember(fn, "across", func(op *opdef.Op) kernel.Function {
		return &across{runtime: r, fn: fn, op: op, bound: map[string]kernel.Function{}}
	})
}

// remember returns the function of a kind and attributes, made at the first request.
func (r *Runtime) remember(fn opdef.Func, kind string, create func(*opdef.Op) kernel.Function) (kernel.Function, error) {
	sig, err := r.signature(fn.Name)
	if err != nil {
		return nil, err
	}
	key := kind + " " + opdef.FormatAttr(fn)
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

// compile makes the executor of a body, or of the part of it on this device.
func (r *Runtime) compile(fn opdef.Func, g *graph.Graph) (*executor.Executor, error) {
	e, err := executor.New(g, executor.Config{Device: r.device, NewKernel: r.newOwned, Log: r.log})
	if err != nil {
		return nil, status.Errorf(status.CodeOf(err), "In function %s: %w", fn.Name, err)
	}
	return e, nil
}

// newOwned makes a kernel of a body, which the runtime closes.
func (r *Runtime) newOwned(n *graph.Node) (kernel.Kernel, error) {
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

// Close closes the kernels of all bodies, and drops what other tasks have of them. No call must be
// under way.
func (r *Runtime) Close() { r.family.close() }

func (r *Runtime) closeKernels() {
	r.mu.Lock()
	closers := r.closers
	r.closers, r.closed = nil, true
	r.mu.Unlock()
	for _, c := range closers {
		c.Close()
	}
}
