package function

import (
	"slices"

	gpu "github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/tensor"
)

// elsewhere is a function that runs on another device of the task than its caller. A GPU, or the
// host, cannot read the memory of the other one, so tensors there are copied to the host on their
// way. A GPU takes tensors of the host.
type elsewhere struct {
	kernel.Function
	caller, callee *gpu.Device // nil for the host
}

// Call implements kernel.Function.
func (f *elsewhere) Call(ctx *kernel.Context, args []tensor.Tensor, done func(rets []tensor.Tensor, err error)) {
	gpu.Gather(args, f.callee, func(err error) {
		if err != nil {
			releaseAll(args)
			done(nil, err)
			return
		}
		f.Function.Call(ctx, args, func(rets []tensor.Tensor, err error) { f.deliver(rets, err, done) })
	})
}

// deliver passes results to the caller. It copies the slice, which belongs to the call that ends
// when deliver returns.
func (f *elsewhere) deliver(rets []tensor.Tensor, err error, done func([]tensor.Tensor, error)) {
	if err != nil {
		done(nil, err)
		return
	}
	rets = slices.Clone(rets)
	gpu.Gather(rets, f.caller, func(err error) {
		if err != nil {
			releaseAll(rets)
			rets = nil
		}
		done(rets, err)
	})
}
