package function

import (
	"sync"

	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

var errNoLibrary = status.Internalf("No function library is provided.")

// instantiate returns the function named by a node's attribute.
func instantiate(c *kernel.Construction, fn opdef.Func) (kernel.Function, error) {
	if c.Functions == nil {
		return nil, errNoLibrary
	}
	return c.Functions.Instantiate(fn)
}

// selected is a kernel that calls one function with some of its inputs and returns the function's
// results.
type selected struct {
	// function to call
	choose func(ctx *kernel.Context) (kernel.Function, error)
	// number of leading inputs that are not passed to the function
	skip int
	// returns the error for a function whose number of results differs from the node's outputs; if
	// nil, a general error is used
	miscount func(want, got int) error

	calls sync.Pool // of *selectedCall
}

// selectedCall is a call in progress. It is reused with its callback.
type selectedCall struct {
	k        *selected
	ctx      *kernel.Context
	done     func(error)
	args     []tensor.Tensor
	returned func([]tensor.Tensor, error)
}

func (k *selected) Compute(ctx *kernel.Context) error { return wait(k, ctx) }

func (k *selected) ComputeAsync(ctx *kernel.Context, done func(error)) {
	f, err := k.choose(ctx)
	if err != nil {
		done(err)
		return
	}
	c, _ := k.calls.Get().(*selectedCall)
	if c == nil {
		c = &selectedCall{k: k}
		c.returned = c.end
	}
	c.ctx, c.done = ctx, done
	c.args = takeInputs(c.args[:0], ctx, k.skip)
	f.Call(ctx, c.args, c.returned)
}

func (c *selectedCall) end(rets []tensor.Tensor, err error) {
	ctx, done := c.ctx, c.done
	c.ctx, c.done = nil, nil
	switch {
	case err != nil:
	case c.k.miscount != nil && len(rets) != ctx.NumOutputs():
		err = c.k.miscount(ctx.NumOutputs(), len(rets))
		releaseAll(rets)
	default:
		err = setOutputs(ctx, rets)
	}
	c.k.calls.Put(c)
	done(err)
}

// wait computes an asynchronous kernel and waits for its callback.
func wait(k kernel.Async, ctx *kernel.Context) error {
	result := make(chan error, 1)
	k.ComputeAsync(ctx, func(err error) { result <- err })
	return <-result
}

// takeInputs appends the inputs of a node from the given index on and transfers their references.
func takeInputs(to []tensor.Tensor, ctx *kernel.Context, from int) []tensor.Tensor {
	for i := from; i < ctx.NumInputs(); i++ {
		to = append(to, ctx.TakeInput(i))
	}
	return to
}

// setOutputs sets the outputs of a node to the results of a function.
func setOutputs(ctx *kernel.Context, rets []tensor.Tensor) error {
	err := checkOutputs(ctx, rets)
	for i := range rets {
		if err != nil {
			rets[i].Release()
		} else {
			ctx.SetOutput(i, rets[i])
		}
	}
	return err
}

func checkOutputs(ctx *kernel.Context, rets []tensor.Tensor) error {
	if len(rets) != ctx.NumOutputs() {
		return status.Internalf("Expect to produce %d tensors, but only get %d", ctx.NumOutputs(), len(rets))
	}
	for i := range rets {
		if have, want := rets[i].DType(), ctx.OutputType(i); have != want {
			return status.Internalf("Expect %d-th output is of type %v but get %v", i, want, have)
		}
	}
	return nil
}

// truth converts a tensor to a condition: a scalar is true if it is not zero or the empty string;
// any other tensor is true if it has elements.
func truth(t *tensor.Tensor) (bool, error) {
	if t.Rank() > 0 {
		return t.NumElements() > 0, nil
	}
	switch t.DType() {
	case tensor.Bool:
		return tensor.Value[bool](t), nil
	case tensor.String:
		return tensor.Value[string](t) != "", nil
	case tensor.Float32:
		return tensor.Value[float32](t) != 0, nil
	case tensor.Float64:
		return tensor.Value[float64](t) != 0, nil
	case tensor.Int32, tensor.Uint8, tensor.Int16, tensor.Int8, tensor.Int64:
		for _, b := range t.Bytes() {
			if b != 0 {
				return true, nil
			}
		}
		return false, nil
	default:
		return false, status.InvalidArgumentf("%v cannot be converted to a boolean", t.DType())
	}
}
