package mathops

import (
	"slices"

	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "CompareAndBitpack",
			Doc:  "Compares values with a threshold and packs eight results along the last dimension into a byte, the first one as the highest bit. TensorFlow 2 lacks it.",
			In:   []string{"input: T", "threshold: T"}, Out: []string{"output: uint8"},
			Attrs: []string{"T: {bool, float16, float32, float64, int8, int16, int32, int64}"}, Shape: bitpackShape,
		},
		Kernels: byT(kernel.Table{
			// the threshold of booleans does not count, as in TensorFlow
			tensor.Bool:    kernel.Stateless(bitpack(func(x, _ bool) bool { return x })),
			tensor.Float16: kernel.Stateless(bitpack(func(x, y tensor.Float16Elem) bool { return x.Float32() > y.Float32() })),
			tensor.Float32: kernel.Stateless(bitpack(above[float32])), tensor.Float64: kernel.Stateless(bitpack(above[float64])),
			tensor.Int8: kernel.Stateless(bitpack(above[int8])), tensor.Int16: kernel.Stateless(bitpack(above[int16])),
			tensor.Int32: kernel.Stateless(bitpack(above[int32])), tensor.Int64: kernel.Stateless(bitpack(above[int64])),
		}),
	})
}

func above[T int8 | int16 | int32 | int64 | float32 | float64](x, y T) bool { return x > y }

func bitpackShape(c *opdef.ShapeContext) error {
	in, err := opdef.WithRankAtLeast(c.In[0], 1)
	if err != nil {
		return err
	}
	if _, err := opdef.WithRank(c.In[1], 0); err != nil || !in.RankKnown() {
		return err
	}
	bytes, err := shapefn.Divide(in.Dim(-1), 8)
	c.Out[0] = shapefn.Replace(in, -1, bytes)
	return err
}

func bitpack[T tensor.Elem](holds func(x, threshold T) bool) kernel.Func {
	return func(ctx *kernel.Context) error {
		in, threshold := ctx.Input(0), ctx.Input(1)
		switch last := in.Rank() - 1; {
		case threshold.Rank() != 0:
			return status.InvalidArgumentf("Compare must be a scalar, but saw shape: %v", threshold.Shape())
		case last < 0:
			return status.InvalidArgumentf("Input should be at least a vector, but saw a scalar.")
		case in.Dim(last)%8 != 0:
			return status.InvalidArgumentf("Inner dimension of input should be divisible by 8, but saw shape: %v", in.Shape())
		}
		shape := slices.Clone(in.Shape())
		shape[len(shape)-1] /= 8
		out, err := ctx.Allocate(0, shape)
		if err != nil {
			return err
		}
		x, y, z := tensor.Values[T](in), tensor.Value[T](threshold), tensor.Values[uint8](out)
		for i := range z {
			z[i] = 0
			for _, v := range x[8*i : 8*i+8] {
				z[i] <<= 1
				if holds(v, y) {
					z[i] |= 1
				}
			}
		}
		return nil
	}
}
