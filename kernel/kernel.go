// Package kernel defines the interface between the executor and the kernels of operations, and the
// registry of both.
//
// An operation registers itself once, in the file that implements it:
//
//	func init() {
//		kernel.Register(kernel.Op{
//			Def: opdef.Def{
//				Name: "Relu", Doc: "Computes max(features, 0).",
//				In: []string{"features: T"}, Out: []string{"activations: T"},
//				Attrs: []string{"T: realnumbertype"}, Shape: opdef.SameShape,
//			},
//			Kernels: kernel.ByType("T", kernel.Table{
//				tensor.Float32: kernel.Stateless(relu[float32]),
//				tensor.Float64: kernel.Stateless(relu[float64]),
//			}),
//		})
//	}
//
// When a graph is registered, the executor looks up the kernel for the device and attributes of
// each node and constructs it once, with its New function. Each step calls Compute with a [Context]
// that holds the inputs and receives the outputs. Several steps may call a kernel concurrently, so
// a kernel must guard its state.
//
// Inputs are borrowed: a kernel that keeps one after the call retains it ([tensor.Tensor.Retain]).
// Setting an output transfers the reference to the executor. A kernel may write to the memory of an
// input only through [Context.Forward], which checks that there are no other holders.
package kernel

import (
	"context"
	"io"
	"os"

	"github.com/weft-ml/weft/internal/format/fileio"
	gpu "github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/internal/sys/observe"
	"github.com/weft-ml/weft/internal/sys/scalars"
	"github.com/weft-ml/weft/internal/sys/stepctx"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Kernel computes one node. Its errors have codes (package status), and the executor adds the name
// of the node. A panic becomes an Internal error of the step.
type Kernel interface {
	Compute(ctx *Context) error
}

// Func is a stateless kernel.
type Func func(*Context) error

// Compute calls f.
func (f Func) Compute(ctx *Context) error { return f(ctx) }

// Async is a kernel that may wait for another task, a queue or a callback. The executor calls
// ComputeAsync instead of Compute. ComputeAsync must not block. It calls done exactly once, on
// any goroutine, and ctx is valid until then. A wait must end with the step's context.
type Async interface {
	Kernel
	ComputeAsync(ctx *Context, done func(error))
}

// AsyncFunc is a stateless [Async] kernel.
type AsyncFunc func(ctx *Context, done func(error))

// ComputeAsync calls f.
func (f AsyncFunc) ComputeAsync(ctx *Context, done func(error)) { f(ctx, done) }

// Compute calls f and waits for done.
func (f AsyncFunc) Compute(ctx *Context) error {
	ended := make(chan error, 1)
	f(ctx, func(err error) { ended <- err })
	return <-ended
}

// Closer is a kernel with resources to release when its graph is dropped.
type Closer interface {
	Close()
}

// New constructs the kernel of a node. It checks the attributes, so Compute need not.
type New func(*Construction) (Kernel, error)

// Stateless returns the constructor of a kernel without state.
func Stateless(f Func) New {
	return func(*Construction) (Kernel, error) { return f, nil }
}

// Construction is the information for constructing a kernel.
type Construction struct {
	Node      string // name of the node
	Op        *opdef.Op
	Attrs     opdef.Attrs    // all attributes of Op, checked
	Inputs    []tensor.DType // declared types of the inputs
	Outputs   []tensor.DType // declared types of the outputs
	Device    *Device
	Functions Functions // the graph's function library; nil if it has none

	GraphVersion int // producer version of the graph

	// InputNode returns the name of the node that an input comes from, for messages. It is nil
	// outside of a graph.
	InputNode func(i int) string
}

// InputName returns the name of an input for messages: that of the node that it comes from, or else
// that of the argument.
func (c *Construction) InputName(i int) string {
	if c.InputNode != nil {
		return c.InputNode(i)
	}
	return c.Op.Inputs[min(i, len(c.Op.Inputs)-1)].Name
}

// InputRange returns the positions lo to hi of the inputs of the named argument.
func (c *Construction) InputRange(arg string) (lo, hi int, err error) {
	return opdef.ArgRange(c.Op.Inputs, c.Attrs, arg)
}

// Files returns the access to files that the class of the operation gives. It is the only access
// that a kernel may use. In a kernel's call, bind it to the step with its method In, so that the
// end of the step ends it:
//
//	files := c.Files()
//	return Func(func(ctx *Context) error {
//		b, err := files.In(ctx.Context()).Read(path)
//		…
func (c *Construction) Files() fileio.Files {
	var system *fileio.FS
	if c.Device != nil {
		system = c.Device.Files
	}
	if c.Op == nil {
		return system.For(c.Node, 0)
	}
	var rights fileio.Rights
	if c.Op.Class&(opdef.FilesRead|opdef.FilesWrite) != 0 {
		rights = fileio.Reading
	}
	if c.Op.Class&opdef.FilesWrite != 0 {
		rights |= fileio.Writing
	}
	return system.For(c.Op.Name, rights)
}

// WithFiles returns the constructor of a kernel whose only state is its access to files.
func WithFiles(f func(*Context, fileio.Files) error) New {
	return func(c *Construction) (Kernel, error) {
		files := c.Files()
		return Func(func(ctx *Context) error { return f(ctx, files.In(ctx.Context())) }), nil
	}
}

// Output returns the standard output of the task, or its standard error. An operation whose class
// does not contain [opdef.Prints] gets a writer that fails.
func (c *Construction) Output(standardError bool) io.Writer {
	switch {
	case c.Op == nil || c.Op.Class&opdef.Prints == 0:
		return denied{c.Node}
	case standardError:
		return standard{&os.Stderr}
	}
	return standard{&os.Stdout}
}

// standard is a standard stream of the process, which a program may replace.
type standard struct{ file **os.File }

func (s standard) Write(b []byte) (int, error) { return (*s.file).Write(b) }

// denied is the output of an operation that may not print.
type denied struct{ node string }

func (d denied) Write([]byte) (int, error) {
	return 0, status.Internalf("the definition of the operation of %s does not say that it prints", d.node)
}

// Device is a device that kernels run on.
type Device struct {
	Name        string           // canonical, as in "/job:worker/replica:0/task:0/device:CPU:0"
	Type        string           // "CPU" or "GPU"
	Incarnation uint64           // random number, different after each start of the task
	MemoryLimit int64            // bytes
	Resources   *Resources       // variables, queues, tables
	Files       *fileio.FS       // files that operations may use; nil for all
	Policy      *Policy          // operations that the task runs; nil for all
	Observer    observe.Observer // is notified of nodes and checkpoints; may be nil
	Scalars     *scalars.Board   // gets the numbers of summary operations; may be nil
	GPU         *gpu.Device      // memory and streams of a GPU; nil for a CPU
}

// Step is one run of a graph. All its kernels share it.
type Step struct {
	ID      int64
	Context context.Context // done when the step is over or cancelled; its cause is the reason
	// cancels the rest of the step because of an error: its context and its rendezvous; may be nil
	Cancel     func(error)
	Rendezvous Rendezvous
	Resources  *Resources // dropped at the end of the step: stacks, tensor arrays
	Session    string     // handle of the session, "" outside of one
	// Account pays for the tensors that the nodes of the step make; nil for none.
	Account *membudget.Account
	// Collectives is nil for a step without collective operations.
	Collectives Collectives
	// NewRendezvous creates the rendezvous of a detached step, see [Step.Detach]. If it is nil,
	// detached steps have no rendezvous.
	NewRendezvous func() Rendezvous
	// Calls counts the calls of functions of the step; nil for no limit.
	Calls *stepctx.Calls
}

// Detach returns a step for work that outlives s, such as the prefetching of a dataset. The new
// step ends with ctx. It shares the ID and the session of s, and the session pays for its tensors.
// Its rendezvous and its resources are its own, and it has no collectives.
func (s *Step) Detach(ctx context.Context) *Step {
	d := &Step{
		ID: s.ID, Context: ctx, Resources: NewResources(""), Session: s.Session, NewRendezvous: s.NewRendezvous,
		Account: s.Account.Owner(), Calls: new(stepctx.Calls),
	}
	d.Calls.Of(ctx)
	if s.NewRendezvous != nil {
		d.Rendezvous = s.NewRendezvous()
	}
	return d
}

// FrameIter is the position of a node's execution within loops: the frame instance and its
// iteration. It is 0, 0 outside of loops.
type FrameIter struct {
	Frame uint64 // identifier of the frame instance
	Iter  int64  // number of the iteration, from 0
}

// Rendezvous pairs producers and consumers of the tensors that cross devices in one step.
type Rendezvous interface {
	// Send stores a tensor or passes it to a waiting consumer. It takes over the reference and does
	// not block.
	Send(key *Key, at FrameIter, t tensor.Tensor, dead bool) error
	// SendVariable is Send of the value that a variable has when the consumer requests it.
	SendVariable(key *Key, at FrameIter, v *Variable) error
	// Recv calls done once, immediately or later, on any goroutine. done receives the tensor and
	// owns its reference, or it receives an error: that of the step if the step ends before the
	// tensor arrives.
	Recv(key *Key, at FrameIter, done func(t tensor.Tensor, dead bool, err error))
}

// Functions instantiates functions of the graph of a kernel.
type Functions interface {
	// Instantiate prepares a function for calls on the device of the kernel. Recursive functions
	// are possible: bodies are prepared at their first call.
	Instantiate(fn opdef.Func) (Function, error)
	// InstantiateAcross is Instantiate for calls whose nodes run on the devices that they request,
	// on any task, and on the devices of the resources among the arguments.
	InstantiateAcross(fn opdef.Func) (Function, error)
	// InstantiateOn is Instantiate for calls on the named device, on any task. Missing parts of the
	// name are those of the kernel's task.
	InstantiateOn(device string, fn opdef.Func) (Function, error)
}

// Graphs is implemented by [Functions] whose graphs can be serialized in part, for operations whose
// values are graphs.
type Graphs interface {
	// Library returns the named functions and the functions that they use, as a serialized
	// FunctionDefLibrary.
	Library(names []string) ([]byte, error)
	// Load returns a serialized GraphDef as a function without arguments. Its results are the
	// inputs of the graph's _Retval nodes. The functions of that graph take precedence over those
	// of the kernel's graph.
	Load(graphDef []byte) (Function, error)
}

// Function is an instantiated function.
type Function interface {
	// Op returns its signature.
	Op() *opdef.Op
	// Call runs the body as part of the caller's step. It takes over the references of args, and it
	// uses args until it calls done. It calls done exactly once, on this goroutine or another. done
	// owns the references of rets, but not the slice.
	Call(ctx *Context, args []tensor.Tensor, done func(rets []tensor.Tensor, err error))
}
