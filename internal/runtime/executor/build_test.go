package executor_test

import (
	"context"
	"fmt"
	"maps"
	"testing"

	"github.com/weft-ml/weft/graph"
	_ "github.com/weft-ml/weft/internal/kernels/comm"
	_ "github.com/weft-ml/weft/internal/kernels/control"
	"github.com/weft-ml/weft/internal/runtime/executor"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// builder builds graphs of the operations in ops_test.go, on int64 scalars unless stated otherwise.
type builder struct {
	testing.TB
	*graph.Graph
}

func newBuilder(t testing.TB) *builder {
	t.Helper()
	return &builder{TB: t, Graph: graph.New(kernel.Default)}
}

// add adds a node. An empty name is replaced by the operation and a number.
func (b *builder) add(name, op string, attrs opdef.Attrs, in ...graph.Output) *graph.Node {
	b.Helper()
	if name == "" {
		name = fmt.Sprintf("%s_%d", op, b.NumIDs())
	}
	n, err := b.Add(name, op, attrs)
	if err != nil {
		b.Fatal(err)
	}
	for i, src := range in {
		if err := b.Connect(src, n, i); err != nil {
			b.Fatal(err)
		}
	}
	return n
}

// typed adds a node with attribute T = int64.
func (b *builder) typed(op string, in ...graph.Output) *graph.Node {
	b.Helper()
	return b.add("", op, opdef.Attrs{"T": tensor.Int64}, in...)
}

func (b *builder) constant(v tensor.Tensor) graph.Output {
	b.Helper()
	return b.add("", "Const", opdef.Attrs{"value": v, "dtype": v.DType()}).Out(0)
}

func (b *builder) number(v int64) graph.Output { b.Helper(); return b.constant(tensor.Scalar(v)) }

func (b *builder) sum(x, y graph.Output) graph.Output {
	b.Helper()
	return b.add("", "Add2", nil, x, y).Out(0)
}

func (b *builder) arg(i int, dtype tensor.DType) graph.Output {
	b.Helper()
	return b.add("", "_Arg", opdef.Attrs{"T": dtype, "index": int64(i)}).Out(0)
}

func (b *builder) ret(i int, v graph.Output) *graph.Node {
	b.Helper()
	return b.add("", "_Retval", opdef.Attrs{"T": v.DType().Base(), "index": int64(i)}, v)
}

// sw adds a Switch and returns its outputs.
func (b *builder) sw(data, pred graph.Output) (onFalse, onTrue graph.Output) {
	b.Helper()
	n := b.add("", "Switch", opdef.Attrs{"T": data.DType()}, data, pred)
	return n.Out(0), n.Out(1)
}

// merge adds a Merge with n inputs. The inputs that are not given stay open.
func (b *builder) merge(n int, in ...graph.Output) *graph.Node {
	b.Helper()
	return b.add("", "Merge", opdef.Attrs{"T": tensor.Int64, "N": int64(n)}, in...)
}

func (b *builder) enter(frame string, v graph.Output, attrs opdef.Attrs) graph.Output {
	b.Helper()
	all := opdef.Attrs{"T": v.DType(), "frame_name": frame}
	maps.Copy(all, attrs)
	return b.add("", "Enter", all, v).Out(0)
}

var constEnter = opdef.Attrs{"is_constant": true}

// loop adds a while loop over int64 variables. cond and body receive the variables inside the loop.
// loop returns the values of the variables after the loop.
func (b *builder) loop(frame string, parallel int, init []graph.Output, cond func(vars []graph.Output) graph.Output,
	body func(vars []graph.Output) []graph.Output,
) []graph.Output {
	b.Helper()
	merges, vars := make([]*graph.Node, len(init)), make([]graph.Output, len(init))
	for i, v := range init {
		merges[i] = b.merge(2, b.enter(frame, v, opdef.Attrs{"parallel_iterations": int64(parallel)}))
		vars[i] = merges[i].Out(0)
	}
	pred := b.add("", "LoopCond", nil, cond(vars)).Out(0)
	exits, inside := make([]graph.Output, len(init)), make([]graph.Output, len(init))
	for i, v := range vars {
		onFalse, onTrue := b.sw(v, pred)
		exits[i] = b.typed("Exit", onFalse).Out(0)
		inside[i] = b.typed("Identity", onTrue).Out(0)
	}
	for i, v := range body(inside) {
		if err := b.Connect(b.typed("NextIteration", v).Out(0), merges[i], 1); err != nil {
			b.Fatal(err)
		}
	}
	return exits
}

// countTo adds a loop that counts from start to limit by step.
func (b *builder) countTo(frame string, parallel int, start, limit, step graph.Output) graph.Output {
	b.Helper()
	limit, step = b.enter(frame, limit, constEnter), b.enter(frame, step, constEnter)
	return b.loop(frame, parallel, []graph.Output{start},
		func(vars []graph.Output) graph.Output { return b.add("", "Less2", nil, vars[0], limit).Out(0) },
		func(vars []graph.Output) []graph.Output { return []graph.Output{b.sum(vars[0], step)} })[0]
}

var testDevice = &kernel.Device{
	Name: "/job:localhost/replica:0/task:0/device:CPU:0", Type: kernel.CPU, Incarnation: 1,
	Resources: kernel.NewResources("localhost"),
}

// newKernel creates a kernel as a worker does.
func newKernel(n *graph.Node) (kernel.Kernel, error) {
	impl := kernel.Default.Find(n.Op.Name, kernel.CPU, n.Attrs)
	if impl == nil {
		return nil, status.InvalidArgumentf("No OpKernel was registered to support Op '%s'", n.Op.Name)
	}
	return impl.New(&kernel.Construction{
		Node: n.Name, Op: n.Op, Attrs: n.Attrs, Inputs: n.InTypes, Outputs: n.OutTypes, Device: testDevice,
	})
}

func (b *builder) compile() *executor.Executor {
	b.Helper()
	e, err := executor.New(b.Graph, executor.Config{Device: testDevice, NewKernel: newKernel})
	if err != nil {
		b.Fatal(err)
	}
	return e
}

// newStep returns a step that can be cancelled, as Step.Cancel does after an error.
func newStep(t testing.TB, table interface {
	kernel.Rendezvous
	Abort(error)
},
) *kernel.Step {
	ctx, cancel := context.WithCancelCause(t.Context())
	t.Cleanup(func() { cancel(nil) })
	step := &kernel.Step{ID: 1, Context: ctx, Resources: kernel.NewResources("step")}
	if table == nil {
		step.Cancel = func(err error) { cancel(err) }
		return step
	}
	step.Rendezvous = table
	step.Cancel = func(err error) { cancel(err); table.Abort(err) }
	return step
}

// run runs the graph once with int64 arguments and returns its nrets results.
func (b *builder) run(nrets int, args ...int64) []tensor.Tensor {
	b.Helper()
	rets, err := call(b, b.compile(), nrets, args...)
	if err != nil {
		b.Fatal(err)
	}
	return rets
}

func call(t testing.TB, e *executor.Executor, nrets int, args ...int64) ([]tensor.Tensor, error) {
	opts := executor.RunOptions{Rets: make([]tensor.Tensor, nrets)}
	for _, a := range args {
		opts.Args = append(opts.Args, tensor.Scalar(a))
	}
	err := e.Run(newStep(t, nil), opts)
	return opts.Rets, err
}

func wantNumber(t testing.TB, got *tensor.Tensor, want int64) {
	t.Helper()
	if !got.Initialized() {
		t.Errorf("no result, want %d", want)
	} else if v := tensor.Value[int64](got); v != want {
		t.Errorf("got %d, want %d", v, want)
	}
}
