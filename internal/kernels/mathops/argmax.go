package mathops

import (
	"math"
	"slices"

	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/numeric/simd"
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	const types = "{float32, float64, int32, uint8, int16, int8, int64, bfloat16, uint16, float16, uint32, uint64, qint8, quint8, qint32, qint16, quint16, bool}"
	position("ArgMax", "Returns the index of the largest element along a dimension, the first one if several are equal.", types, "{int16, uint16, int32, int64}", true)
	position("ArgMin", "Returns the index of the smallest element along a dimension, the first one if several are equal.", types, "{int32, int64}", false)
}

func position(name, doc, types, results string, largest bool) {
	index := "{int32, int64}"
	if largest {
		index = "{int16, int32, int64}"
	}
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: name, Doc: doc, In: []string{"input: T", "dimension: Tidx"}, Out: []string{"output: output_type"},
			Attrs: []string{"T: " + types, "Tidx: " + index + " = int32", "output_type: " + results + " = int64"},
			Shape: positionShape,
		},
		Kernels: byT(positions(largest)),
	})
}

func positionShape(c *opdef.ShapeContext) error {
	if err := shapefn.CheckRanks(c, 1, 0); err != nil {
		return err
	}
	rank := c.In[0].Rank()
	if rank < 0 {
		return nil
	}
	if rank <= 1 {
		c.Out[0] = tensor.MakePartial()
		return nil
	}
	dim, known := c.ScalarValue(1)
	if !known {
		c.Out[0] = tensor.UnknownDims(rank - 1)
		return nil
	}
	axis, ok := intarg.Axis(dim, rank)
	if !ok {
		return status.InvalidArgumentf("Dimension (%d) must be in the range [%d, %d), where %d is the number of dimensions in the input.",
			dim, -rank, rank, rank)
	}
	c.Out[0] = shapefn.Concat(shapefn.Sub(c.In[0], 0, axis), shapefn.From(c.In[0], axis+1))
	return nil
}

func positions(largest bool) kernel.Table {
	t := kernel.Table{}
	floatPosition[float32](t, largest, math.MaxFloat32)
	floatPosition[float64](t, largest, math.MaxFloat64)
	realPosition[int8](t, largest, math.MinInt8, math.MaxInt8)
	realPosition[int16](t, largest, math.MinInt16, math.MaxInt16)
	intPosition(t, largest)
	realPosition[int64](t, largest, math.MinInt64, math.MaxInt64)
	realPosition[uint8](t, largest, 0, math.MaxUint8)
	realPosition[uint16](t, largest, 0, math.MaxUint16)
	realPosition[uint32](t, largest, 0, math.MaxUint32)
	realPosition[uint64](t, largest, 0, math.MaxUint64)
	t[tensor.Bool] = newPosition(func(x []bool, n, stride int) int {
		for i := range n {
			if x[i*stride] == largest {
				return i
			}
		}
		return 0
	})
	shortPosition(t, largest, tensor.Float16Of(-65504), tensor.Float16Of(65504), tensor.Float16Elem.Float32)
	shortPosition(t, largest, tensor.BFloat16Elem(0xff7f), tensor.BFloat16Elem(0x7f7f), tensor.BFloat16Elem.Float32)
	return t
}

// columns searches len(at) adjacent columns of n rows at once. Rows are stride elements apart.
type columns[T tensor.Elem] func(at []int64, x []T, n, stride int)

func largestOfEach[T elementwise.Real](lowest T) columns[T] {
	return func(at []int64, x []T, n, stride int) {
		//sizedmake:ok a block of columns
		best := slices.Repeat([]T{lowest}, len(at))
		clear(at)
		for i := range n {
			for j, v := range x[i*stride:][:len(best)] {
				if v > best[j] {
					best[j], at[j] = v, int64(i)
				}
			}
		}
	}
}

func smallestOfEach[T elementwise.Real](highest T) columns[T] {
	return func(at []int64, x []T, n, stride int) {
		//sizedmake:ok a block of columns
		best := slices.Repeat([]T{highest}, len(at))
		clear(at)
		for i := range n {
			for j, v := range x[i*stride:][:len(best)] {
				if v < best[j] {
					best[j], at[j] = v, int64(i)
				}
			}
		}
	}
}

// search returns the position of the best of n elements, stride apart: the first if several are
// equal, and 0 if none is better than the worst value. NaN is ignored.
type search[T tensor.Elem] func(x []T, n, stride int) int

func largestOf[T elementwise.Real](lowest T) func(x []T, n, stride int) int {
	return func(x []T, n, stride int) int {
		best, value := 0, lowest
		for i := range n {
			if v := x[i*stride]; v > value {
				best, value = i, v
			}
		}
		return best
	}
}

func smallestOf[T elementwise.Real](highest T) func(x []T, n, stride int) int {
	return func(x []T, n, stride int) int {
		best, value := 0, highest
		for i := range n {
			if v := x[i*stride]; v < value {
				best, value = i, v
			}
		}
		return best
	}
}

func realPosition[T realElem](t kernel.Table, largest bool, lowest, highest T) {
	find, each := smallestOf(highest), smallestOfEach(highest)
	if largest {
		find, each = largestOf(lowest), largestOfEach(lowest)
	}
	t[tensor.DTypeOf[T]()] = newRowPosition(inRows(find), each)
}

// floatPosition finds the extreme of each row, and then its position, with vector code.
func floatPosition[T simd.Float](t kernel.Table, largest bool, limit T) {
	find, each, extremes := smallestOf(limit), smallestOfEach(limit), simd.MinRows[T]
	if largest {
		find, each, extremes = largestOf(-limit), largestOfEach(-limit), simd.MaxRows[T]
	}
	t[tensor.DTypeOf[T]()] = newRowPosition(inBlocks(extremes, func(at []int64, x, best []T, n int) {
		simd.FirstEqual(at, x, best, n)
		for i, v := range at {
			if v < 0 { // the row has a NaN
				at[i] = int64(find(x[i*n:], n, 1))
			}
		}
	}), each)
}

// intPosition finds the extreme of each row, and then its position, with vector code.
func intPosition(t kernel.Table, largest bool) {
	each, extremes := smallestOfEach[int32](math.MaxInt32), simd.MinIntRows[int32]
	if largest {
		each, extremes = largestOfEach[int32](math.MinInt32), simd.MaxIntRows[int32]
	}
	t[tensor.Int32] = newRowPosition(inBlocks(extremes, simd.FirstEqualInt), each)
}

// inBlocks computes the extremes of a block of rows and then finds their positions.
func inBlocks[T tensor.Elem](extremes func(best, x []T, n int), find func(at []int64, x, best []T, n int)) func(at []int64, x []T, n int) {
	return func(at []int64, x []T, n int) {
		best := membudget.Make[T](min(len(at), 64))
		for len(at) > 0 {
			rows := min(len(best), len(at))
			extremes(best[:rows], x, n)
			find(at[:rows], x[:rows*n], best[:rows], n)
			at, x = at[rows:], x[rows*n:]
		}
	}
}

func shortPosition[T elementwise.Short](t kernel.Table, largest bool, lowest, highest T, value func(T) float32) {
	sign := float32(-1)
	worst := -value(highest)
	if largest {
		sign, worst = 1, value(lowest)
	}
	t[tensor.DTypeOf[T]()] = newPosition(func(x []T, n, stride int) int {
		best, top := 0, worst
		for i := range n {
			if v := sign * value(x[i*stride]); v > top {
				best, top = i, v
			}
		}
		return best
	})
}

func newPosition[T tensor.Elem](find search[T]) kernel.New {
	return newRowPosition(inRows(find), func(at []int64, x []T, n, stride int) {
		for j := range at {
			at[j] = int64(find(x[j:], n, stride))
		}
	})
}

// inRows searches one row at a time.
func inRows[T tensor.Elem](find search[T]) func(at []int64, x []T, n int) {
	return func(at []int64, x []T, n int) {
		for i := range at {
			at[i] = int64(find(x[i*n:], n, 1))
		}
	}
}

// newRowPosition returns the kernel that calls rows if the reduced axis is the innermost one, and
// each otherwise. rows sets at to the positions within rows of n elements.
func newRowPosition[T tensor.Elem](rows func(at []int64, x []T, n int), each columns[T]) kernel.New {
	return kernel.Stateless(func(ctx *kernel.Context) error {
		in, dimension := ctx.Input(0), ctx.Input(1)
		if dimension.Rank() != 0 {
			return status.InvalidArgumentf("dim must be a scalar, but received tensor of shape: %v", dimension.Shape())
		}
		dim := intarg.Scalar(dimension)
		axis, ok := intarg.Axis(dim, in.Rank())
		if !ok {
			return status.InvalidArgumentf("Expected dimension in the range [%d, %d), but got %d", -in.Rank(), in.Rank(), dim)
		}
		n := in.Dim(axis)
		shape := append(append(tensor.Shape{}, in.Shape()[:axis]...), in.Shape()[axis+1:]...)
		if n == 0 && shape.NumElements() > 0 {
			return status.InvalidArgumentf("Reduction axis %d is empty in shape %v", dim, in.Shape())
		}
		out, err := ctx.Allocate(0, shape)
		if err != nil || out.NumElements() == 0 {
			return err
		}
		inner := int(in.Shape()[axis+1:].NumElements())
		x, at := tensor.Values[T](in), []int64(nil)
		if out.DType() == tensor.Int64 {
			at = tensor.Values[int64](out)
		} else {
			at = membudget.Make[int64](out.NumElements())
		}
		parallel.For(len(at), max(1, elementwise.Grain(medium)/n), func(lo, hi int) {
			if inner == 1 {
				rows(at[lo:hi], x[lo*n:hi*n], n)
				return
			}
			for lo < hi {
				end := min(hi, lo+inner-lo%inner) // end of the adjacent columns
				each(at[lo:end], x[lo/inner*n*inner+lo%inner:], n, inner)
				lo = end
			}
		})
		if out.DType() != tensor.Int64 {
			intarg.Set(out, at)
		}
		return nil
	})
}
