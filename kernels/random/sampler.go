package random

import (
	"github.com/weft-ml/weft/internal/ints"
	"github.com/weft-ml/weft/internal/philox"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func sourceOf(attrs opdef.Attrs) *philox.Source {
	return philox.NewSource(attrs.Int("seed"), attrs.Int("seed2"))
}

// perSample is the number of outputs that TensorFlow sets aside for each element of a tensor.
const perSample = 256

// sampler draws a tensor of the shape that input 0 gives.
type sampler[T tensor.Elem] struct {
	source *philox.Source
	dist   *philox.Distribution[T]
}

func (s *sampler[T]) Compute(ctx *kernel.Context) error {
	out, err := allocate(ctx)
	if err != nil {
		return err
	}
	philox.Fill(tensor.Values[T](out), s.source.Take(uint64(out.NumElements())*perSample), s.dist)
	return nil
}

// allocate makes output 0 of the shape that input 0 gives.
func allocate(ctx *kernel.Context) (*tensor.Tensor, error) {
	in := ctx.Input(0)
	if in.Rank() != 1 {
		return nil, status.InvalidArgumentf("shape must be a vector of {int32,int64}, got shape %v", in.Shape())
	}
	shape, err := ints.Shape(ints.Values(in))
	if err != nil {
		return nil, err
	}
	return ctx.Allocate(0, shape)
}

// drawing returns the kernel that fills a tensor with samples of a distribution.
func drawing[T tensor.Elem](dist *philox.Distribution[T]) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		return &sampler[T]{sourceOf(c.Attrs), dist}, nil
	}
}
