package ragged

import (
	"math"

	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "RaggedRange", Doc: "Returns a ragged tensor whose rows are ranges of numbers.",
			In:    []string{"starts: T", "limits: T", "deltas: T"},
			Out:   []string{"rt_nested_splits: Tsplits", "rt_dense_values: T"},
			Attrs: []string{"T: {bfloat16, float32, float64, int32, int64} = int32", "Tsplits: {int32, int64} = int64"},
			Shape: rangeShape,
		},
		Kernels: kernel.ByType("T", kernel.Table{
			tensor.Float32: newRange(floatSteps[float32]), tensor.Float64: newRange(floatSteps[float64]),
			tensor.Int32: newRange(intSteps[int32]), tensor.Int64: newRange(intSteps[int64]),
		}),
	})
}

func rangeShape(c *opdef.ShapeContext) error {
	n, scalars := shapefn.Unknown, 0
	for _, s := range c.In {
		s, err := opdef.WithRankAtMost(s, 1)
		if err != nil {
			return err
		}
		switch s.Rank() {
		case 0:
			scalars++
		case 1:
			if n, err = opdef.MergeDims(s.Dim(0), n); err != nil {
				return err
			}
		}
	}
	if scalars == len(c.In) {
		n = 1
	}
	c.Out[0], c.Out[1] = shapefn.Of(shapefn.Add(n, 1)), shapefn.Of(shapefn.Unknown)
	return nil
}

type number interface {
	tensor.Elem
	int32 | int64 | float32 | float64
}

// intSteps returns the number of steps of a range whose limit is in the direction of delta.
func intSteps[T int32 | int64](start, limit, delta T, most int64) (int64, bool) {
	span, step := uint64(int64(limit))-uint64(int64(start)), uint64(int64(delta))
	if delta < 0 {
		span, step = -span, -step
	}
	n := span / step
	if span%step != 0 {
		n++
	}
	return int64(n), n <= uint64(most)
}

func floatSteps[T float32 | float64](start, limit, delta T, most int64) (int64, bool) {
	n := math.Ceil(math.Abs(float64((limit - start) / delta)))
	return int64(n), n <= float64(most) && n < math.MaxInt64
}

// broadcast returns element i of t, or its only element.
func broadcast[T number](t *tensor.Tensor, i int) T {
	if t.Rank() == 0 {
		i = 0
	}
	return tensor.Values[T](t)[i]
}

// rangeRows returns the number of ranges that the inputs describe.
func rangeRows(ctx *kernel.Context) (int, error) {
	n := -1
	for i, name := range []string{"starts", "limits", "deltas"} {
		t := ctx.Input(i)
		switch {
		case t.Rank() > 1:
			return 0, status.InvalidArgumentf("%s must be a scalar or vector", name)
		case t.Rank() == 1 && n >= 0 && t.Dim(0) != n:
			return 0, status.InvalidArgumentf("starts, limits, and deltas must have the same shape")
		case t.Rank() == 1:
			n = t.Dim(0)
		}
	}
	if n < 0 {
		n = 1
	}
	return n, nil
}

func newRange[T number](steps func(start, limit, delta T, most int64) (int64, bool)) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		most := int64(math.MaxInt64)
		if c.Attrs.Type("Tsplits") == tensor.Int32 {
			most = math.MaxInt32
		}
		return kernel.Func(func(ctx *kernel.Context) error {
			n, err := rangeRows(ctx)
			if err != nil {
				return err
			}
			splits := membudget.Make[int64](n + 1)
			for row := range n {
				start, limit, delta := broadcast[T](ctx.Input(0), row), broadcast[T](ctx.Input(1), row), broadcast[T](ctx.Input(2), row)
				size, ok := int64(0), true
				switch {
				case delta == 0:
					return status.InvalidArgumentf("Requires delta != 0")
				case delta > 0 && limit < start, delta < 0 && limit > start:
				default:
					size, ok = steps(start, limit, delta, most)
				}
				if !ok {
					return status.InvalidArgumentf("Requires ((limit - start) / delta) <= %d", most)
				}
				if size > most-splits[row] {
					return status.InvalidArgumentf("The total range size overflowed. Consider using int64 instead of int32 for row_splits_dtype.")
				}
				splits[row+1] = splits[row] + size
			}
			return putRanges[T](ctx, splits)
		}), nil
	}
}

func putRanges[T number](ctx *kernel.Context, splits []int64) error {
	if err := putInts(ctx, 0, splits); err != nil {
		return err
	}
	out, err := ctx.Allocate(1, tensor.Shape{splits[len(splits)-1]})
	if err != nil {
		return err
	}
	vals := tensor.Values[T](out)
	for row := range len(splits) - 1 {
		v, delta := broadcast[T](ctx.Input(0), row), broadcast[T](ctx.Input(2), row)
		for i := splits[row]; i < splits[row+1]; i++ {
			vals[i] = v
			v += delta
		}
	}
	return nil
}
