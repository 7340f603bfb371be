package math

import (
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
	realPosition[float32](t, largest)
	realPosition[float64](t, largest)
	realPosition[int8](t, largest)
	realPosition[int16](t, largest)
	realPosition[int32](t, largest)
	realPosition[int64](t, largest)
	realPosition[uint8](t, largest)
	realPosition[uint16](t, largest)
	realPosition[uint32](t, largest)
	realPosition[uint64](t, largest)
	t[tensor.Bool] = newPosition(func(a, b bool) bool { return a != b && a == largest })
	t[tensor.Float16] = newPosition(func(a, b tensor.Half) bool { return beyond(a.Float32(), b.Float32(), largest) })
	t[tensor.BFloat16] = newPosition(func(a, b tensor.BFloat) bool { return beyond(a.Float32(), b.Float32(), largest) })
	return t
}

func realPosition[T interface {
	elementwise.Real
	tensor.Elem
}](t kernel.Table, largest bool) {
	if largest {
		t[tensor.DTypeOf[T]()] = newPosition(func(a, b T) bool { return a > b })
		return
	}
	t[tensor.DTypeOf[T]()] = newPosition(func(a, b T) bool { return a < b })
}

func beyond(a, b float32, largest bool) bool {
	if largest {
		return a > b
	}
	return a < b
}

// newPosition returns the kernel that finds the element which no other is better than.
func newPosition[T tensor.Elem](better func(a, b T) bool) kernel.New {
	return kernel.Stateless(func(ctx *kernel.Context) error {
		in := ctx.Input(0)
		dim := ints.Scalar(ctx.Input(1))
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
				first := i/inner*n*inner + i%inner
				best := 0
				for j := 1; j < n; j++ {
					if better(x[first+j*inner], x[first+best*inner]) {
						best = j
					}
				}
				at[i] = int64(best)
			}
		})
		ints.Set(out, at)
		return nil
	})
}
