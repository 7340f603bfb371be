package function

import (
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterNew(opdef.Def{
		Name: "For", Doc: "Computes inputs = body(i, inputs) for i from start up to limit, exclusive, in steps of delta.",
		In: []string{"start: int32", "limit: int32", "delta: int32", "input: T"}, Out: []string{"output: T"},
		Attrs: []string{"T: list(type) >= 0", "body: func"}, Shape: opdef.UnknownShape,
	}, newFor)
}

type forKernel struct{ body kernel.Function }

func newFor(c *kernel.Construction) (kernel.Kernel, error) {
	body, err := instantiate(c, c.Attrs.Func("body"))
	if err != nil {
		return nil, err
	}
	return &forKernel{body}, nil
}

func (k *forKernel) Compute(ctx *kernel.Context) error { return wait(k, ctx) }

func (k *forKernel) ComputeAsync(ctx *kernel.Context, done func(error)) {
	f := &forLoop{body: k.body, ctx: ctx, done: done}
	if err := f.readRange(); err != nil {
		done(err)
		return
	}
	f.vars = takeInputs(nil, ctx, 3)
	f.args = membudget.Make[tensor.Tensor](len(f.vars) + 1)
	if f.over() {
		done(setOutputs(ctx, f.vars))
		return
	}
	f.repeat(f.begin, f.end)
}

// forLoop is a loop in progress.
type forLoop struct {
	trampoline
	body            kernel.Function
	ctx             *kernel.Context
	done            func(error)
	i, limit, delta int64 // int32 values, widened to avoid overflow
	vars, args      []tensor.Tensor
}

func (f *forLoop) readRange() error {
	for i, to := range []*int64{&f.i, &f.limit, &f.delta} {
		in := f.ctx.Input(i)
		if in.Rank() > 0 {
			return status.InvalidArgumentf("%s must be a scalar, but %v", [...]string{"start", "limit", "delta"}[i], in.Shape())
		}
		*to = int64(tensor.Value[int32](in))
	}
	if f.delta > 0 && f.i <= f.limit || f.delta < 0 && f.i >= f.limit || f.delta == 0 && f.i == f.limit {
		return nil
	}
	return status.InvalidArgumentf("Invalid start/limit/delta: %d %d %d", f.i, f.limit, f.delta)
}

func (f *forLoop) over() bool {
	if f.delta > 0 {
		return f.i >= f.limit
	}
	return f.i <= f.limit
}

func (f *forLoop) begin(returned func([]tensor.Tensor, error)) {
	f.args[0] = tensor.Scalar(int32(f.i))
	copy(f.args[1:], f.vars)
	clear(f.vars)
	f.body.Call(f.ctx, f.args, returned)
}

func (f *forLoop) end(rets []tensor.Tensor, err error) bool {
	if err == nil && len(rets) != len(f.vars) {
		releaseAll(rets)
		err = status.InvalidArgumentf("For loop body returned %d arguments. Expected: %d", len(rets), len(f.vars))
	}
	if err != nil {
		f.done(err)
		return false
	}
	copy(f.vars, rets)
	f.i += f.delta
	if f.over() {
		f.done(setOutputs(f.ctx, f.vars))
		return false
	}
	return true
}
