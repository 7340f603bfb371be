package random

import (
	"github.com/weft-ml/weft/internal/numeric/philox"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	const doc = "Outputs random integers from a uniform distribution over [minval, maxval)."
	const fullDoc = "Outputs random integers from a uniform distribution over all values of the type."
	bounds := []string{"minval: dtype", "maxval: dtype"}
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "RandomUniformInt", Doc: doc,
			In: []string{"shape: T", "minval: Tout", "maxval: Tout"}, Out: []string{"output: Tout"},
			Attrs:    with(seedAttrs, "Tout: {int32, int64}", "T: {int32, int64}"),
			Stateful: true, Shape: rangeShape(1, shapeOfInput(0)),
		},
		Kernels: kernel.ByType("Tout", rangeTable(seeded, true)),
	})
	for _, op := range []struct {
		drawn
		early bool // whether bounds are checked before the shape
	}{
		{drawn{
			"StatelessRandomUniformInt", with([]string{"shape: T", "seed: Tseed"}, bounds...),
			[]string{"dtype: {int32, int64}", "T: {int32, int64}", "Tseed: {int32, int64} = int64"},
			bySeed, false, rangeShape(2, bySeedShape),
		}, false},
		{drawn{
			"StatelessRandomUniformIntV2", with(byKeyIn, bounds...),
			[]string{"dtype: {int32, int64, uint32, uint64}", "Tshape: {int32, int64} = int32"},
			byKey, false, rangeShape(4, byKeyShape),
		}, false},
		{drawn{
			"StatefulUniformInt", with(byVariableIn, bounds...), []string{"dtype: type = int64", byShapeTypeIn},
			byVariable, true, rangeShape(3, byVariableShape),
		}, true},
	} {
		registerDrawn(op.drawn, doc+originDoc[false], rangeTable(op.origin, op.early))
	}
	for _, op := range []drawn{
		{
			"StatelessRandomUniformFullInt", []string{"shape: T", "seed: Tseed"},
			[]string{"dtype: {int32, int64, uint32, uint64} = uint64", "T: {int32, int64} = int32", "Tseed: {int32, int64, uint32, uint64} = int64"},
			bySeed, false, bySeedShape,
		},
		{
			"StatelessRandomUniformFullIntV2", byKeyIn,
			[]string{"dtype: {int32, int64, uint32, uint64} = uint64", "Tshape: {int32, int64} = int32"}, byKey, false, byKeyShape,
		},
		{
			"StatefulUniformFullInt", byVariableIn, []string{"dtype: type = uint64", byShapeTypeIn}, byVariable, true, byVariableShape,
		},
	} {
		registerDrawn(op, fullDoc+originDoc[false], kernel.Table{
			tensor.Int32: drawing(op.origin, "full", philox.FullInt32[int32]()), tensor.Uint32: drawing(op.origin, "full", philox.FullInt32[uint32]()),
			tensor.Int64: drawing(op.origin, "full", philox.FullInt64[int64]()), tensor.Uint64: drawing(op.origin, "full", philox.FullInt64[uint64]()),
		})
	}
}

// rangeShape returns a shape function that also checks that the bounds, inputs i and i+1, are
// scalars.
func rangeShape(i int, rest opdef.ShapeFn) opdef.ShapeFn {
	return func(c *opdef.ShapeContext) error {
		for j, name := range []string{"minval", "maxval"} {
			if _, err := opdef.WithRank(c.In[i+j], 0); err != nil {
				return status.InvalidArgumentf("%s must be a scalar; got a tensor of shape %v", name, c.In[i+j])
			}
		}
		return rest(c)
	}
}

func rangeTable(o newOrigin, early bool) kernel.Table {
	return kernel.Table{
		tensor.Int32: newRange(o, early, philox.UniformInt32[int32]), tensor.Int64: newRange(o, early, philox.UniformInt64[int64]),
	}
}

// newRange returns a kernel that draws from a range. between returns the distribution.
func newRange[T int32 | int64](o newOrigin, early bool, between func(lo, hi T) *philox.Distribution[T]) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		first := o(c).args
		scalars := func(ctx *kernel.Context) error {
			for i, name := range []string{"minval", "maxval"} {
				if in := ctx.Input(first + i); in.Rank() != 0 {
					return status.InvalidArgumentf("%s must be 0-D, got shape %v", name, in.Shape())
				}
			}
			return nil
		}
		before := noCheck
		if early {
			before = scalars
		}
		return sampling(o, before, func(ctx *kernel.Context, _ *origin) (*philox.Distribution[T], error) {
			if err := scalars(ctx); err != nil {
				return nil, err
			}
			lo, hi := tensor.Value[T](ctx.Input(first)), tensor.Value[T](ctx.Input(first+1))
			if lo >= hi {
				return nil, status.InvalidArgumentf("Need minval < maxval, got %d >= %d", lo, hi)
			}
			return between(lo, hi), nil
		}, func(ctx *kernel.Context) (string, []any) {
			lo, hi := tensor.Value[T](ctx.Input(first)), tensor.Value[T](ctx.Input(first+1))
			return "ranged", []any{uint64(int64(lo)), uint64(int64(hi)) - uint64(int64(lo))}
		})(c)
	}
}
