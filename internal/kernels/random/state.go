package random

import (
	"github.com/weft-ml/weft/internal/numeric/philox"
	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// stateSize is the number of elements of a variable that holds a generator: two for the counter and
// one for the key.
const stateSize = 3

// variable returns the variable of the handle in input 0.
func variable(ctx *kernel.Context) (*kernel.Variable, error) {
	h := tensor.Value[*tensor.Handle](ctx.Input(0))
	if h == nil {
		return nil, status.InvalidArgumentf("the handle of the generator's variable is empty")
	}
	if v, ok := h.Resource.(*kernel.Variable); ok {
		return v, nil
	}
	return kernel.LookupResource[*kernel.Variable](ctx.Device.Resources, h.Container, h.Name)
}

func checkState(t *tensor.Tensor) error {
	switch {
	case !t.Initialized():
		return status.FailedPreconditionf("the variable of the generator is not initialized")
	case t.DType() != tensor.Int64:
		return status.InvalidArgumentf("dtype of RNG state variable must be int64, not %v", t.DType())
	case t.Rank() != 1:
		return status.InvalidArgumentf("RNG state must have one and only one dimension, not %d", t.Rank())
	}
	return nil
}

// advance returns the generator in the variable of input 0 and advances the variable by n outputs.
// The generator follows tag elements, which begin with the algorithm.
func advance(ctx *kernel.Context, tag int, n uint64) (g philox.Generator, err error) {
	alg := int64(algPhilox)
	if tag == 0 {
		if alg, err = algorithm(ctx, 1); err != nil {
			return g, err
		}
	}
	v, err := variable(ctx)
	if err != nil {
		return g, err
	}
	err = v.Update(func(t *tensor.Tensor) error {
		if err := checkState(t); err != nil {
			return err
		}
		if tag > 0 {
			if t.NumElements() < tag {
				return status.InvalidArgumentf("Size of tensor must be at least 1")
			}
			if alg, err = resolve(tensor.Values[int64](t)[0]); err != nil {
				return err
			}
		}
		if alg != algPhilox {
			return status.Unimplementedf("Non-XLA devices don't support the ThreeFry algorithm.")
		}
		if t.NumElements() < tag+stateSize {
			return status.InvalidArgumentf("For the Philox algorithm, the size of state must be at least %d; got %d",
				tag+stateSize, t.NumElements())
		}
		own, err := ctx.Writable(t)
		if err != nil {
			return err
		}
		s := tensor.Values[int64](own)[tag:]
		g = philox.At(uint64(s[2]), uint64(s[0]), uint64(s[1]))
		next := g
		next.Skip(n)
		low, high := next.Counter()
		s[0], s[1] = int64(low), int64(high)
		return nil
	})
	return g, err
}

// shapeInput returns the shape that input i holds.
func shapeInput(ctx *kernel.Context, i int) (tensor.Shape, error) {
	in := ctx.Input(i)
	if in.Rank() != 1 || in.DType() != tensor.Int32 && in.DType() != tensor.Int64 {
		return nil, status.InvalidArgumentf("shape must be a vector of {int32,int64}, got shape %v", in.Shape())
	}
	return intarg.Shape(intarg.Values(in))
}
