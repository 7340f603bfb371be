package random

import (
	"github.com/weft-ml/weft/internal/philox"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "RandomUniformInt", Doc: "Draws integers uniformly distributed over [minval, maxval).",
			In: []string{"shape: T", "minval: Tout", "maxval: Tout"}, Out: []string{"output: Tout"},
			Attrs:    []string{"seed: int = 0", "seed2: int = 0", "Tout: {int32, int64}", "T: {int32, int64}"},
			Stateful: true, Shape: uniformIntShape,
		},
		Kernels: kernel.ByType("Tout", kernel.Table{
			tensor.Int32: newUniformInt(philox.UniformInt32[int32]),
			tensor.Int64: newUniformInt(philox.UniformInt64[int64]),
		}),
	})
}

func uniformIntShape(c *opdef.ShapeContext) error {
	for i, name := range []string{"minval", "maxval"} {
		if _, err := opdef.WithRank(c.In[i+1], 0); err != nil {
			return status.InvalidArgumentf("%s must be a scalar; got a tensor of shape %v", name, c.In[i+1])
		}
	}
	return shapeOfInput0(c)
}

// uniformInt draws a tensor of integers; between makes the distribution over a range.
type uniformInt[T int32 | int64] struct {
	source  *philox.Source
	between func(lo, hi T) *philox.Distribution[T]
}

func newUniformInt[T int32 | int64](between func(lo, hi T) *philox.Distribution[T]) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		return &uniformInt[T]{sourceOf(c.Attrs), between}, nil
	}
}

func (u *uniformInt[T]) Compute(ctx *kernel.Context) error {
	for i, name := range []string{"minval", "maxval"} {
		if in := ctx.Input(i + 1); in.Rank() != 0 {
			return status.InvalidArgumentf("%s must be 0-D, got shape %v", name, in.Shape())
		}
	}
	out, err := allocate(ctx)
	if err != nil || out.NumElements() == 0 {
		return err
	}
	lo, hi := tensor.Value[T](ctx.Input(1)), tensor.Value[T](ctx.Input(2))
	if lo >= hi {
		return status.InvalidArgumentf("Need minval < maxval, got %d >= %d", lo, hi)
	}
	philox.Fill(tensor.Values[T](out), u.source.Take(uint64(out.NumElements())*perSample), u.between(lo, hi))
	return nil
}
