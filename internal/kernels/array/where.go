package array

import (
	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/numeric/simd"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "Where",
			Doc:  "Returns the indices of the elements that are true or nonzero, one row per element.",
			In:   []string{"input: T"},
			Out:  []string{"index: int64"},
			Attrs: []string{
				"T: {float32, float64, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, quint16, uint16, complex128, float16, uint32, uint64, bool} = bool",
			},
			Shape: func(c *opdef.ShapeContext) error {
				c.Out[0] = shapefn.Of(shapefn.Unknown, int64(c.In[0].Rank()))
				return nil
			},
		},
		Kernels: kernel.ByType("T", kernel.Table{
			tensor.Bool: where(false), tensor.Int8: where[int8](0), tensor.Int16: where[int16](0),
			tensor.Int32: where[int32](0), tensor.Int64: where[int64](0), tensor.Uint8: where[uint8](0),
			tensor.Uint16: where[uint16](0), tensor.Uint32: where[uint32](0), tensor.Uint64: where[uint64](0),
			tensor.Float32: where[float32](0), tensor.Float64: where[float64](0),
			tensor.Complex64: where[complex64](0), tensor.Complex128: where[complex128](0),
			tensor.Float16:  where[tensor.Float16Elem](1 << 15),
			tensor.BFloat16: where[tensor.BFloat16Elem](1 << 15),
		}),
	})
}

// whereBlock is the number of elements per block of the scan.
const whereBlock = 1 << 14

// where returns the kernel for a type whose elements are false if they equal zero or other, the
// zero of opposite sign.
func where[T interface {
	tensor.Elem
	comparable
}](other T) kernel.New {
	var zero T
	return kernel.Stateless(func(ctx *kernel.Context) error {
		in := ctx.Input(0)
		vals := tensor.Values[T](in)
		// End of each block's rows in the output.
		ends := membudget.Make[int](parallel.Blocks(len(vals), whereBlock))
		parallel.For(len(vals), whereBlock, func(lo, hi int) {
			ends[lo/whereBlock] = simd.Count(truths(vals[lo:hi], zero, other))
		})
		total := 0
		for i, n := range ends {
			total += n
			ends[i] = total
		}
		rank := in.Rank()
		out, err := ctx.Allocate(0, tensor.Shape{int64(total), int64(rank)})
		if err != nil || out.NumElements() == 0 {
			return err
		}
		coords := tensor.Values[int64](out)
		inner := in.Dim(rank - 1)
		parallel.For(len(vals), whereBlock, func(lo, hi int) {
			at, end := 0, ends[lo/whereBlock]*rank
			if lo > 0 {
				at = ends[lo/whereBlock-1] * rank
			}
			position := membudget.Make[int64](rank)
			unravel(position, int64(lo), in.Shape())
			first, isTrue := lo, truths(vals[lo:hi], zero, other)
			for lo < hi {
				col := int(position[rank-1])
				n := min(inner-col, hi-lo)
				at += listTrue(coords[at:end], isTrue[lo-first:][:n], position)
				lo += n
				if lo < hi {
					unravel(position, int64(lo), in.Shape())
				}
			}
		})
		return nil
	})
}

// truths reports, for each element, whether it differs from both zero and other.
func truths[T comparable](vals []T, zero, other T) []bool {
	switch x := any(vals).(type) {
	case []bool:
		return x
	case []float32:
		is := membudget.Make[bool](len(vals))
		simd.CompareScalar(simd.NotEqual, is, x, 0)
		return is
	}
	is := membudget.Make[bool](len(vals))
	for i, v := range vals {
		is[i] = v != zero && v != other
	}
	return is
}

// listTrue appends the coordinates of the true elements of a row to coords and returns how many it
// wrote. position is the position of the row's first element. The coordinates of every element are
// written, and those of a false element are overwritten by the next. This avoids a branch that
// cannot be predicted.
func listTrue(coords []int64, row []bool, position []int64) int {
	rank, at := len(position), 0
	col := position[rank-1]
	for i, v := range row {
		if at >= len(coords) {
			break
		}
		step := 0
		if v {
			step = rank
		}
		switch rank {
		case 1:
			coords[at] = col + int64(i)
		case 2:
			coords[at], coords[at+1] = position[0], col+int64(i)
		default:
			copy(coords[at:at+rank-1], position)
			coords[at+rank-1] = col + int64(i)
		}
		at += step
	}
	return at
}

// unravel sets coords to the position of element i in a tensor of the given shape.
func unravel(coords []int64, i int64, shape tensor.Shape) {
	for k := len(shape) - 1; k >= 0; k-- {
		coords[k] = i % shape[k]
		i /= shape[k]
	}
}
