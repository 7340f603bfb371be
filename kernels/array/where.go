package array

import (
	"github.com/weft-ml/weft/internal/shapes"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "Where", Doc: "Gives the indices of the elements that are true or not zero, one row each.",
			In:  []string{"input: T"},
			Out: []string{"index: int64"},
			Attrs: []string{
				"T: {float32, float64, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, quint16, uint16, complex128, float16, uint32, uint64, bool} = bool",
			},
			Shape: func(c *opdef.ShapeContext) error {
				c.Out[0] = shapes.Of(shapes.Unknown, int64(c.In[0].Rank()))
				return nil
			},
		},
		Kernels: kernel.ByType("T", kernel.Table{
			tensor.Bool: where(nonzero[bool]), tensor.Int8: where(nonzero[int8]), tensor.Int16: where(nonzero[int16]),
			tensor.Int32: where(nonzero[int32]), tensor.Int64: where(nonzero[int64]), tensor.Uint8: where(nonzero[uint8]),
			tensor.Uint16: where(nonzero[uint16]), tensor.Uint32: where(nonzero[uint32]), tensor.Uint64: where(nonzero[uint64]),
			tensor.Float32: where(nonzero[float32]), tensor.Float64: where(nonzero[float64]),
			tensor.Complex64: where(nonzero[complex64]), tensor.Complex128: where(nonzero[complex128]),
			tensor.Float16:  where(func(h tensor.Half) bool { return h&0x7fff != 0 }),
			tensor.BFloat16: where(func(b tensor.BFloat) bool { return b&0x7fff != 0 }),
		}),
	})
}

func nonzero[T comparable](v T) bool { return v != *new(T) }

func where[T tensor.Elem](hit func(T) bool) kernel.New {
	return kernel.Stateless(func(ctx *kernel.Context) error {
		in := ctx.Input(0)
		vals := tensor.Values[T](in)
		n := 0
		for _, v := range vals {
			if hit(v) {
				n++
			}
		}
		out, err := ctx.Allocate(0, tensor.Shape{int64(n), int64(in.Rank())})
		if err != nil {
			return err
		}
		coords, at := tensor.Values[int64](out), 0
		for i, v := range vals {
			if hit(v) {
				unravel(coords[at:at+in.Rank()], int64(i), in.Shape())
				at += in.Rank()
			}
		}
		return nil
	})
}

// unravel sets coords to the place of element number i in a tensor of the given shape.
func unravel(coords []int64, i int64, shape tensor.Shape) {
	for k := len(shape) - 1; k >= 0; k-- {
		coords[k] = i % shape[k]
		i /= shape[k]
	}
}
