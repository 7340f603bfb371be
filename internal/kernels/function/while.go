package function

import (
	gpu "github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	register := func(name, doc string, stateful bool, attrs ...string) {
		kernel.RegisterNew(opdef.Def{
			Name: name, Doc: doc, In: []string{"input: T"}, Out: []string{"output: T"},
			Attrs: append([]string{"T: list(type) >= 0", "cond: func", "body: func"}, attrs...),
			Shape: whileShape, Stateful: stateful,
		}, newWhile)
	}
	shapes, parallel := "output_shapes: list(shape) = []", "parallel_iterations: int = 10"
	register("While", "Computes inputs = body(inputs) while cond(inputs) is true.", true, shapes, parallel)
	register("StatelessWhile", "Computes inputs = body(inputs) while cond(inputs) is true. Both functions are stateless.", false, shapes, parallel)
	register("_While", "Computes inputs = body(inputs) while cond(inputs) is true. The older form of While.", true)
}

// whileShape is like branchShape, but without the attribute outputs have the shapes of the inputs.
func whileShape(c *opdef.ShapeContext) error {
	copy(c.Out, c.In)
	copy(c.OutHandles, c.InHandles)
	return branchShape(c)
}

type while struct{ cond, body kernel.Function }

func newWhile(c *kernel.Construction) (kernel.Kernel, error) {
	cond, err := instantiate(c, c.Attrs.Func("cond"))
	if err != nil {
		return nil, err
	}
	body, err := instantiate(c, c.Attrs.Func("body"))
	if err != nil {
		return nil, err
	}
	return &while{cond, body}, nil
}

func (k *while) Compute(ctx *kernel.Context) error { return wait(k, ctx) }

func (k *while) ComputeAsync(ctx *kernel.Context, done func(error)) {
	w := &whileLoop{while: k, ctx: ctx, done: done, vars: takeInputs(nil, ctx, 0)}
	w.args = membudget.Make[tensor.Tensor](len(w.vars))
	w.repeat(w.begin, w.end)
}

// whileLoop is a loop in progress. It calls the condition and the body in turn.
type whileLoop struct {
	*while
	trampoline
	ctx    *kernel.Context
	done   func(error)
	vars   []tensor.Tensor
	args   []tensor.Tensor // arguments of the call in progress
	inBody bool
}

// begin calls the condition with the variables, or the body, which takes ownership of them.
func (w *whileLoop) begin(returned func([]tensor.Tensor, error)) {
	for i := range w.vars {
		w.args[i] = w.vars[i].Retain()
		if w.inBody {
			w.vars[i].Release()
		}
	}
	if w.inBody {
		w.body.Call(w.ctx, w.args, returned)
	} else {
		w.cond.Call(w.ctx, w.args, returned)
	}
}

// end stores the results and reports whether the loop continues.
func (w *whileLoop) end(rets []tensor.Tensor, err error) bool {
	goOn := true
	switch {
	case err != nil:
	case w.inBody:
		err = w.takeVars(rets)
	default:
		goOn, err = w.holds(rets)
	}
	w.inBody = !w.inBody
	if err == nil && goOn {
		return true
	}
	if err == nil {
		err = setOutputs(w.ctx, w.vars)
	} else {
		releaseAll(w.vars)
	}
	w.done(err)
	return false
}

func (w *whileLoop) holds(rets []tensor.Tensor) (bool, error) {
	defer releaseAll(rets)
	if len(rets) != 1 {
		return false, status.InvalidArgumentf("Expected a single scalar return value from WhileOp cond, got %d tensors.", len(rets))
	}
	if rets[0].OnDevice() { // of a condition that runs on a GPU
		var err error
		if rets[0], err = gpu.PlaceNow(rets[0], nil); err != nil {
			return false, err
		}
	}
	return truth(&rets[0])
}

func (w *whileLoop) takeVars(rets []tensor.Tensor) error {
	if len(rets) != len(w.vars) {
		defer releaseAll(rets)
		return status.InvalidArgumentf("While loop body returned %d arguments. Expected: %d", len(rets), len(w.vars))
	}
	copy(w.vars, rets)
	for i := range w.vars {
		if have, want := w.vars[i].DType(), w.ctx.OutputType(i); have != want {
			return status.InvalidArgumentf("Expected type %v for return value %d but got %v.", want, i, have)
		}
	}
	return nil
}

func releaseAll(tensors []tensor.Tensor) {
	for i := range tensors {
		tensors[i].Release()
	}
}
