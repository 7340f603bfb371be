package math

import (
	"math"

	"github.com/weft-ml/weft/internal/elementwise"
	"github.com/weft-ml/weft/internal/ints"
	"github.com/weft-ml/weft/internal/parallel"
	"github.com/weft-ml/weft/internal/shapes"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	const types = "{float32, float64, int32, uint8, int16, int8, int64, bfloat16, uint16, float16, uint32, uint64, qint8, quint8, qint32, qint16, quint16, bool}"
	position("ArgMax", "The position of the largest element along a dimension, the first of several.", types, "{int16, uint16, int32, int64}", true)
	position("ArgMin", "The position of the smallest element along a dimension, the first of several.", types, "{int32, int64}", false)
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
	if err := shapes.CheckRanks(c, 1, 0); err != nil {
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
	axis, ok := ints.Axis(dim, rank)
	if !ok {
		return status.InvalidArgumentf("Dimension (%d) must be in the range [%d, %d), where %d is the number of dimensions in the input.",
			dim, -rank, rank, rank)
	}
	c.Out[0] = shapes.Concat(shapes.Sub(c.In[0], 0, axis), shapes.From(c.In[0], axis+1))
	return nil
}

func positions(largest bool) kernel.Table {
	t := kernel.Table{}
	realPosition[float32](t, largest, -math.MaxFloat32, math.MaxFloat32)
	realPosition[float64](t, largest, -math.MaxFloat64, math.MaxFloat64)
	realPosition[int8](t, largest, math.MinInt8, math.MaxInt8)
	realPosition[int16](t, largest, math.MinInt16, math.MaxInt16)
	realPosition[int32](t, largest, math.MinInt32, math.MaxInt32)
	realPosition[int64](t, largest, math.MinInt64, math.MaxInt64)
	realPosition[uint8](t, largest, 0, math.MaxUint8)
	realPosition[uint16](t, largest, 0, math.MaxUint16)
	realPosition[uint32](t, largest, 0, math.MaxUint32)
	realPosition[uint64](t, largest, 0, math.MaxUint64)
	t[tensor.Bool] = newPosition(!largest, func(a, b bool) bool { return a != b && a == largest })
	shortPosition(t, largest, tensor.HalfOf(-65504), tensor.HalfOf(65504), tensor.Half.Float32)
	shortPosition(t, largest, tensor.BFloat(0xff7f), tensor.BFloat(0x7f7f), tensor.BFloat.Float32)
	return t
}

func realPosition[T interface {
	elementwise.Real
	tensor.Elem
}](t kernel.Table, largest bool, lowest, highest T) {
	if largest {
		t[tensor.DTypeOf[T]()] = newPosition(lowest, func(a, b T) bool { return a > b })
		return
	}
	t[tensor.DTypeOf[T]()] = newPosition(highest, func(a, b T) bool { return a < b })
}

func shortPosition[T elementwise.Short](t kernel.Table, largest bool, lowest, highest T, value func(T) float32) {
	if largest {
		t[tensor.DTypeOf[T]()] = newPosition(lowest, func(a, b T) bool { return value(a) > value(b) })
		return
	}
	t[tensor.DTypeOf[T]()] = newPosition(highest, func(a, b T) bool { return value(a) < value(b) })
}

// newPosition returns the kernel that finds the first element which is better than worst and than which no other is better,
// or the first of all if there is none. Numbers compare so that those that are not a number are passed over.
func newPosition[T tensor.Elem](worst T, better func(a, b T) bool) kernel.New {
	return kernel.Stateless(func(ctx *kernel.Context) error {
		in, dimension := ctx.Input(0), ctx.Input(1)
		if dimension.Rank() != 0 {
			return status.InvalidArgumentf("dim must be a scalar, but received tensor of shape: %v", dimension.Shape())
		}
		dim := ints.Scalar(dimension)
		axis, ok := ints.Axis(dim, in.Rank())
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
		x, at := tensor.Values[T](in), make([]int64, out.NumElements())
		parallel.For(len(at), max(1, elementwise.Grain(medium)/n), func(lo, hi int) {
			for i := lo; i < hi; i++ {
				column := x[i/inner*n*inner+i%inner:]
				best, value := 0, worst
				for j := range n {
					if v := column[j*inner]; better(v, value) {
						best, value = j, v
					}
				}
				at[i] = int64(best)
			}
		})
		ints.Set(out, at)
		return nil
	})
}
