package mathops

import (
	"github.com/weft-ml/weft/internal/numeric/simd"
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/internal/opkit/gatherscatter"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	sorted("SegmentSum", "Sums the rows of data with equal segment ids. The ids are sorted.", numberTypes, elementwise.Add, 0, false)
	sorted("SegmentProd", "Multiplies the rows of data with equal segment ids. The ids are sorted.", numberTypes, elementwise.Mul, 1, false)
	sorted("SegmentMean", "Computes the mean of the rows of data with equal segment ids. The ids are sorted.", numberTypes, elementwise.Add, 0, true)
	sorted("SegmentMax", "Computes the maximum of the rows of data with equal segment ids. The ids are sorted.", realTypes, elementwise.Max, 0, false)
	sorted("SegmentMin", "Computes the minimum of the rows of data with equal segment ids. The ids are sorted.", realTypes, elementwise.Min, 0, false)
}

// sorted registers an operation that combines rows with equal, ascending segment ids. Segments
// without rows have the value gap.
func sorted(name, doc, types string, op elementwise.Op, gap float64, mean bool) {
	t := kernel.Table{}
	runs[float32](t, op, gap, mean)
	runs[float64](t, op, gap, mean)
	runs[tensor.Float16Elem](t, op, gap, mean)
	runs[tensor.BFloat16Elem](t, op, gap, mean)
	runs[int8](t, op, gap, mean)
	runs[int16](t, op, gap, mean)
	runs[int32](t, op, gap, mean)
	runs[int64](t, op, gap, mean)
	runs[uint8](t, op, gap, mean)
	runs[uint16](t, op, gap, mean)
	runs[uint32](t, op, gap, mean)
	runs[uint64](t, op, gap, mean)
	if op == elementwise.Add || op == elementwise.Mul {
		runs[complex64](t, op, gap, mean)
		runs[complex128](t, op, gap, mean)
	}
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: name, Doc: doc, In: []string{"data: T", "segment_ids: Tindices"}, Out: []string{"output: T"},
			Attrs: []string{"T: " + types, "Tindices: {int32, int64}"}, Shape: sortedShape,
		},
		Kernels: byT(allowed(types, t)),
	})
}

func sortedShape(c *opdef.ShapeContext) error {
	if _, err := opdef.WithRankAtLeast(c.In[0], 1); err != nil {
		return err
	}
	if err := shapefn.CheckRanks(c, 1, 1); err != nil {
		return err
	}
	if c.In[0].RankKnown() {
		c.Out[0] = shapefn.Replace(c.In[0], 0, shapefn.Unknown)
	}
	return nil
}

func runs[T tensor.Elem](t kernel.Table, op elementwise.Op, gap float64, mean bool) {
	dtype := tensor.DTypeOf[T]()
	combine := elementwise.Arithmetic[T](op)
	blank := numberOf[T](dtype, gap)
	t[dtype] = kernel.Stateless(func(ctx *kernel.Context) error {
		data, segmentIDs := ctx.Input(0), ctx.Input(1)
		if d := ctx.GPU(); d != nil {
			return runsOnDevice(ctx, d, op, tensor.Scalar(blank), mean)
		}
		list, err := gatherscatter.ReadUnchecked(segmentIDs)
		defer list.Release()
		if err != nil {
			return err
		}
		ids := list.Rows
		if err := checkSorted(data, segmentIDs, ids); err != nil {
			return err
		}
		shape := sortedResult(data, ids)
		out, err := ctx.Allocate(0, shape)
		if err != nil {
			return err
		}
		z, x := tensor.Values[T](out), tensor.Values[T](data)
		size := int(shape[1:].NumElements())
		d := divider[T]{dtype: dtype}
		for lo, filled := 0, int64(0); lo < len(ids); {
			hi := lo + 1
			if rest := z[int(filled)*size : int(ids[lo])*size]; gap == 0 {
				clear(rest)
			} else {
				fill(rest, blank)
			}
			filled = ids[lo] + 1
			row := z[int(ids[lo])*size : int(filled)*size]
			copy(row, x[lo*size:hi*size])
			for ; hi < len(ids) && ids[hi] == ids[lo]; hi++ {
				combine(row, x[hi*size:(hi+1)*size], row) // with NaN, the later operand wins
			}
			if mean && hi-lo > 1 {
				d.divide(row, hi-lo)
			}
			lo = hi
		}
		return nil
	})
}

// sortedResult returns the shape of the result for ascending segment ids.
func sortedResult(data *tensor.Tensor, ids []int64) tensor.Shape {
	shape := append(tensor.Shape{0}, data.Shape()[1:]...)
	if len(ids) > 0 {
		shape[0] = ids[len(ids)-1] + 1
	}
	return shape
}

// divider divides rows by a number. It keeps the divisors of the last call, which are often the
// same.
type divider[T tensor.Elem] struct {
	dtype    tensor.DType
	divisors []T // n, once per element of a row
	n        int
}

func (d *divider[T]) divide(row []T, n int) {
	if singles, ok := any(row).([]float32); ok {
		simd.DivScalar(singles, singles, float32(n))
		return
	}
	if n != d.n {
		if d.divisors == nil {
			d.divisors = membudget.Make[T](len(row))
		}
		fill(d.divisors, numberOf[T](d.dtype, float64(n)))
		d.n = n
	}
	elementwise.Arithmetic[T](elementwise.Div)(row, row, d.divisors)
}

func checkSorted(data, segmentIDs *tensor.Tensor, ids []int64) error {
	if segmentIDs.Rank() != 1 {
		return status.InvalidArgumentf("segment_ids should be a vector.")
	}
	if data.Rank() < 1 || int64(data.Dim(0)) != int64(len(ids)) {
		return status.InvalidArgumentf("segment_ids should be the same size as dimension 0 of input.")
	}
	rows := int64(0)
	if len(ids) > 0 {
		rows = ids[len(ids)-1] + 1
	}
	if len(ids) > 0 && rows <= 0 {
		return status.InvalidArgumentf("segment ids must be >= 0")
	}
	for i, id := range ids {
		switch {
		case i+1 < len(ids) && ids[i+1] == id:
		case i+1 < len(ids) && ids[i+1] < id:
			return status.InvalidArgumentf("segment ids are not increasing")
		case id < 0 || id >= rows:
			return status.InvalidArgumentf("Segment id %d out of range [0, %d), possibly because 'segment_ids' input is not sorted.", id, rows)
		}
	}
	return nil
}

func fill[T any](z []T, v T) {
	const first, maxCopy = 16, 1024 // the copied part stays in the L1 cache
	n := min(len(z), first)
	for i := range z[:n] {
		z[i] = v
	}
	for n < len(z) {
		n += copy(z[n:], z[:min(n, maxCopy)])
	}
}

// numberOf returns v as an element of a numeric type.
func numberOf[T tensor.Elem](dtype tensor.DType, v float64) T {
	t, err := tensor.FromFloat(dtype, v)
	if err != nil {
		panic(err)
	}
	return tensor.Value[T](&t)
}
