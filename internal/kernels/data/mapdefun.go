package data

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/weft-ml/weft/internal/opkit/guard"
	"github.com/weft-ml/weft/internal/opkit/stacking"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterNew(opdef.Def{
		Name: "MapDefun",
		Doc: "Applies a function to each row of arguments, which have equal numbers of rows, and stacks the results. " +
			"Calls may run in parallel.",
		In: []string{"arguments: Targuments", "captured_inputs: Tcaptured"}, Out: []string{"output: output_types"},
		Attrs: append(withSpec("Targuments: list(type) >= 1", "Tcaptured: list(type) >= 0 = []"), "f: func", "max_intra_op_parallelism: int = 1"),
		Shape: mapDefunShape,
	}, newMapDefun)
}

func mapDefunShape(c *opdef.ShapeContext) error {
	shapes := c.Attrs.Shapes("output_shapes")
	if len(shapes) != len(c.Out) {
		return status.InvalidArgumentf("`output_shapes` must be the same length as `output_types` (%d vs. %d)", len(shapes), len(c.Out))
	}
	rows := tensor.UnknownDim
	lo, hi := c.ArgInputs("arguments")
	for i, in := range c.In[lo:hi] {
		if in.RankKnown() && in.Rank() == 0 {
			return status.InvalidArgumentf("Arguments must have rank at least 1. Input %d has rank of 0.", i)
		}
		n := in.Dim(0)
		if n >= 0 && rows >= 0 && n != rows {
			return status.InvalidArgumentf("Arguments must have the same dimension 0.")
		}
		rows = max(rows, n)
	}
	for i, s := range shapes {
		if s.RankKnown() {
			c.Out[i] = tensor.MakePartial(slices.Concat([]int64{rows}, s.Dims())...)
		}
	}
	return nil
}

// mapDefun is the kernel that calls a function for each row of its arguments.
type mapDefun struct {
	f       kernel.Function
	args    int // number of leading inputs that are split into rows
	types   []tensor.DType
	outputs []tensor.PartialShape
}

func newMapDefun(c *kernel.Construction) (kernel.Kernel, error) {
	n, err := newNode(c)
	if err != nil {
		return nil, err
	}
	k := &mapDefun{n.functions["f"], len(c.Attrs.Types("Targuments")), c.Outputs, c.Attrs.Shapes("output_shapes")}
	if len(k.outputs) != len(k.types) {
		return nil, status.InvalidArgumentf("Length of output_shapes and output_types must match.")
	}
	return kernel.AsyncFunc(k.compute), nil
}

func (k *mapDefun) compute(ctx *kernel.Context, done func(error)) {
	rows, err := k.rows(ctx)
	if err != nil {
		done(err)
		return
	}
	calls := &rowCalls{k: k, ctx: newRun(ctx, ctx.Context(), nil).ctx, results: membudget.Make[element](rows), done: func(results []element, err error) {
		if err == nil {
			err = guard.Call("the results of a function", func() error { return k.setOutputs(ctx, results) })
		}
		for _, e := range results {
			e.release()
		}
		done(err)
	}}
	calls.args = element(membudget.Make[tensor.Tensor](ctx.NumInputs()))
	for i := range calls.args {
		calls.args[i] = *ctx.Input(i)
	}
	calls.start()
}

// rows returns the number of rows of the arguments.
func (k *mapDefun) rows(ctx *kernel.Context) (int, error) {
	rows := -1
	if in := ctx.Input(0); in.Rank() > 0 {
		rows = in.Dim(0)
	}
	for i := range k.args {
		in := ctx.Input(i)
		if in.Rank() == 0 {
			return 0, status.InvalidArgumentf("All inputs must have rank at least 1. Input %d has a rank of 0.", i)
		}
		if in.Dim(0) != rows {
			return 0, status.InvalidArgumentf("All inputs must have the same dimension 0. Input %d has leading dimension %d, while all "+
				"previous inputs have leading dimension %d", i, in.Dim(0), rows)
		}
	}
	return rows, nil
}

// setOutputs stacks the results of the calls into the outputs.
func (k *mapDefun) setOutputs(ctx *kernel.Context, results []element) error {
	for i, dtype := range k.types {
		shape, column := k.outputs[i], membudget.Make[tensor.Tensor](len(results))
		for r, e := range results {
			switch {
			case i >= len(e):
				return status.InvalidArgumentf("Mismatch in number of function outputs.")
			case e[i].DType() != dtype:
				return status.InvalidArgumentf("Mismatch in function return type and expected output type for output: %d", i)
			case !shape.CompatibleWith(e[i].Shape()):
				return status.InvalidArgumentf("Mismatch in function retval shape, %v, and expected output shape, %v.", e[i].Shape(), shape)
			}
			shape, column[r] = e[i].Shape().Partial(), e[i]
		}
		full, ok := shape.Full()
		if !ok { // without rows the shape is unknown; TensorFlow has no output either
			continue
		}
		out, err := stacking.Stack(dtype, full, column)
		if err != nil {
			return err
		}
		ctx.SetOutput(i, out)
	}
	return nil
}

// rowCalls runs the calls of a function for all rows. One goroutine per core starts calls in turn,
// without waiting for calls that block.
type rowCalls struct {
	k       *mapDefun
	ctx     *kernel.Context
	args    element // borrowed: the node's inputs
	results []element
	done    func([]element, error)

	next    atomic.Int64
	pending atomic.Int64 // number of calls and starting goroutines that have not ended

	mu  sync.Mutex
	err error // first error; guarded by mu
}

func (c *rowCalls) start() {
	workers := max(1, min(len(c.results), runtime.GOMAXPROCS(0)))
	c.pending.Store(int64(len(c.results) + workers))
	for range workers {
		go func() {
			for i := c.next.Add(1) - 1; i < int64(len(c.results)); i = c.next.Add(1) - 1 {
				c.call(int(i))
			}
			c.end(nil)
		}()
	}
}

func (c *rowCalls) call(i int) {
	var args element
	err := guard.Call("the arguments of a function", func() (err error) {
		args, err = c.row(i)
		return err
	})
	if err != nil {
		c.end(err)
		return
	}
	c.k.f.Call(withStep(c.ctx, c.ctx.Step), args, func(rets []tensor.Tensor, err error) {
		//sizedmake:ok results of a function, as many as an attribute lists
		c.results[i] = slices.Clone(rets)
		c.end(err)
	})
}

// row returns the arguments of a call.
func (c *rowCalls) row(i int) (element, error) {
	args := element(membudget.Make[tensor.Tensor](len(c.args)))
	for a := range args {
		if a >= c.k.args {
			args[a] = c.args[a].Retain()
			continue
		}
		row, err := stacking.Row(&c.args[a], i)
		if err != nil {
			args[:a].release()
			return nil, err
		}
		args[a] = row
	}
	return args, nil
}

// end records the end of a call or of a starting goroutine.
func (c *rowCalls) end(err error) {
	if err != nil {
		c.mu.Lock()
		if c.err == nil {
			c.err = err
		}
		c.mu.Unlock()
	}
	if c.pending.Add(-1) == 0 {
		c.done(c.results, c.err)
	}
}
