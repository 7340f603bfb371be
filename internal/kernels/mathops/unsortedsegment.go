package mathops

import (
	"math"

	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

const numberTypes = "{float32, float64, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, quint16, " +
	"uint16, complex128, float16, uint32, uint64}"

const realTypes = "{float32, float64, int32, uint8, int16, int8, int64, bfloat16, uint16, float16, uint32, uint64}"

func init() {
	unsorted("UnsortedSegmentSum", "Sums the rows of data with the same segment id.", numberTypes,
		"{int16, int32, int64}", elementwise.Add, zero)
	const index = "{int32, int64}"
	unsorted("UnsortedSegmentProd", "Multiplies the rows of data with the same segment id.", numberTypes, index, elementwise.Mul, one)
	unsorted("UnsortedSegmentMax", "Computes the maximum of the rows of data with the same segment id.", realTypes, index,
		elementwise.Max, lowest)
	unsorted("UnsortedSegmentMin", "Computes the minimum of the rows of data with the same segment id.", realTypes, index,
		elementwise.Min, highest)
}

// unsorted registers an operation that combines rows by segment id. Negative ids are skipped.
func unsorted(name, doc, types, index string, op elementwise.Op, start func(tensor.DType) float64) {
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: name, Doc: doc,
			In:  []string{"data: T", "segment_ids: Tindices", "num_segments: Tnumsegments"},
			Out: []string{"output: T"},
			Attrs: []string{
				"T: " + types, "Tindices: " + index, "Tnumsegments: {int32, int64} = int32",
			},
			Shape: unsortedShape,
		},
		Kernels: byT(allowed(types, segmentTable(op, start))),
	})
}

func unsortedShape(c *opdef.ShapeContext) error {
	if err := shapefn.CheckRanks(c, 2, 0); err != nil {
		return err
	}
	data, ids := c.In[0], c.In[1]
	if !data.RankKnown() || !ids.RankKnown() {
		return nil
	}
	if _, err := opdef.WithRankAtLeast(data, ids.Rank()); err != nil {
		return err
	}
	for i := range ids.Rank() {
		if _, err := opdef.MergeDims(data.Dim(i), ids.Dim(i)); err != nil {
			return err
		}
	}
	n, err := shapefn.Dim(c, 2)
	if err != nil {
		return err
	}
	c.Out[0] = shapefn.Concat(shapefn.Of(n), shapefn.From(data, ids.Rank()))
	return nil
}

func zero(tensor.DType) float64 { return 0 }
func one(tensor.DType) float64  { return 1 }

// lowest returns the smallest value of a type, the result for segments without rows.
func lowest(d tensor.DType) float64 {
	if d.IsFloating() {
		return -largestFinite(d)
	}
	return integerBounds(d).low
}

func highest(d tensor.DType) float64 {
	if d.IsFloating() {
		return largestFinite(d)
	}
	return integerBounds(d).high
}

func largestFinite(d tensor.DType) float64 {
	switch d {
	case tensor.Float16:
		return 65504
	case tensor.BFloat16:
		return 3.3895313892515355e38
	case tensor.Float32:
		return math.MaxFloat32
	default:
		return math.MaxFloat64
	}
}

type bounds struct{ low, high float64 }

func integerBounds(d tensor.DType) bounds {
	bits := float64(8 * d.Size())
	switch d {
	case tensor.Uint8, tensor.Uint16, tensor.Uint32, tensor.Uint64:
		return bounds{0, math.Exp2(bits) - 1}
	default:
		return bounds{-math.Exp2(bits - 1), math.Exp2(bits-1) - 1}
	}
}

func segmentTable(op elementwise.Op, start func(tensor.DType) float64) kernel.Table {
	t := kernel.Table{}
	segments[float32](t, op, start)
	segments[float64](t, op, start)
	segments[tensor.Float16Elem](t, op, start)
	segments[tensor.BFloat16Elem](t, op, start)
	segments[int8](t, op, start)
	segments[int16](t, op, start)
	segments[int32](t, op, start)
	segments[int64](t, op, start)
	segments[uint8](t, op, start)
	segments[uint16](t, op, start)
	segments[uint32](t, op, start)
	segments[uint64](t, op, start)
	if op == elementwise.Add || op == elementwise.Mul {
		segments[complex64](t, op, start)
		segments[complex128](t, op, start)
	}
	return t
}

func segments[T tensor.Elem](t kernel.Table, op elementwise.Op, start func(tensor.DType) float64) {
	dtype := tensor.DTypeOf[T]()
	first := firstValue[T](dtype, start)
	combine := elementwise.Arithmetic[T](op)
	t[dtype] = kernel.Stateless(func(ctx *kernel.Context) error {
		data, ids, num := ctx.Input(0), ctx.Input(1), ctx.Input(2)
		if num.Rank() != 0 {
			return status.InvalidArgumentf("num_segments should be a scalar, not shape %v", num.Shape())
		}
		n := intarg.Scalar(num)
		k := ids.Rank()
		switch {
		case n < 0:
			return status.InvalidArgumentf("Input num_segments == %d must not be negative.", n)
		case data.Rank() < k || !data.Shape()[:k].Equal(ids.Shape()):
			return status.InvalidArgumentf("data.shape = %v does not start with segment_ids.shape = %v", data.Shape(), ids.Shape())
		}
		out, err := ctx.Allocate(0, append(tensor.Shape{n}, data.Shape()[k:]...))
		if err != nil {
			return err
		}
		if out.OnDevice() {
			return segmentsOnDevice(op, out, data, ids, tensor.Scalar(first))
		}
		z, x := tensor.Values[T](out), tensor.Values[T](data)
		fill(z, first)
		if len(x) == 0 { // the ids are not checked
			return nil
		}
		size := int(data.Shape()[k:].NumElements())
		if op == elementwise.Add && size == 1 {
			if done, err := addNumbers(out, data, ids, n); done {
				return err
			}
		}
		for i, id := range intarg.Values(ids) {
			if id < 0 {
				continue
			}
			if id >= n {
				return outOfRange(ids, i, id, n)
			}
			row := z[int(id)*size : (int(id)+1)*size]
			combine(row, row, x[i*size:(i+1)*size])
		}
		return nil
	})
}

func outOfRange(ids *tensor.Tensor, i int, id, n int64) error {
	return status.InvalidArgumentf("segment_ids%s = %d is out of range [0, %d)", intarg.Position(ids.Shape(), i), id, n)
}

// addNumbers adds scalars to their segments for the most common types.
func addNumbers(out, data, ids *tensor.Tensor, n int64) (done bool, err error) {
	var bad int
	switch out.DType() {
	case tensor.Float32:
		bad = addListed[float32](out, data, ids)
	case tensor.Float64:
		bad = addListed[float64](out, data, ids)
	case tensor.Int32:
		bad = addListed[int32](out, data, ids)
	case tensor.Int64:
		bad = addListed[int64](out, data, ids)
	default:
		return false, nil
	}
	if bad >= 0 {
		err = outOfRange(ids, bad, intarg.Values(ids)[bad], n)
	}
	return true, err
}

func addListed[T elementwise.Real](sums, x, ids *tensor.Tensor) int {
	if ids.DType() == tensor.Int32 {
		return addEach(tensor.Values[T](sums), tensor.Values[T](x), tensor.Values[int32](ids))
	}
	return addEach(tensor.Values[T](sums), tensor.Values[T](x), intarg.Values(ids))
}

// addEach adds each element of x to the sum that ids selects. It returns the position of the first
// id that is too large, or -1.
func addEach[T elementwise.Real, I int32 | int64](sums, x []T, ids []I) int {
	x = x[:len(ids)]
	for i, id := range ids {
		if uint64(id) < uint64(len(sums)) {
			sums[id] += x[i]
		} else if id >= 0 {
			return i
		}
	}
	return -1
}

// firstValue returns the value of a segment without rows.
func firstValue[T tensor.Elem](dtype tensor.DType, start func(tensor.DType) float64) T {
	switch v := start(dtype); {
	case dtype == tensor.Int64 && v >= math.MaxInt64:
		return any(int64(math.MaxInt64)).(T)
	case dtype == tensor.Uint64 && v >= math.MaxUint64:
		return any(uint64(math.MaxUint64)).(T)
	default:
		t, err := tensor.FromFloat(dtype, v)
		if err != nil {
			panic(err)
		}
		return tensor.Value[T](&t)
	}
}
