package mathops

import (
	"math"
	"strconv"
	"sync"

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
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "HistogramFixedWidth", Doc: "Counts the values in each of nbins equal parts of value_range. Values outside are counted in the outermost bins.",
			In:    []string{"values: T", "value_range: T", "nbins: int32"},
			Out:   []string{"out: dtype"},
			Attrs: []string{"T: {int32, int64, float32, float64}", "dtype: {int32, int64} = int32"},
			Shape: histogramShape,
		},
		Kernels: byT(kernel.Table{
			tensor.Int32: kernel.Stateless(histogram[int32]), tensor.Int64: kernel.Stateless(histogram[int64]),
			tensor.Float32: kernel.Stateless(histogram[float32]), tensor.Float64: kernel.Stateless(histogram[float64]),
		}),
	})
}

func histogramShape(c *opdef.ShapeContext) error {
	if err := shapefn.CheckRanks(c, 1, 1, 0); err != nil {
		return err
	}
	if err := shapefn.CheckDim(c.In[1].Dim(0), 2); err != nil {
		return err
	}
	c.Out[0] = shapefn.Of(shapefn.Unknown)
	n, known := c.ScalarValue(2)
	if !known {
		return nil
	}
	if n <= 0 {
		return status.InvalidArgumentf("Requires nbins > 0: %d", n)
	}
	c.Out[0] = shapefn.Of(n)
	return nil
}

func histogram[T elementwise.Real](ctx *kernel.Context) error {
	values, bounds, bins := ctx.Input(0), ctx.Input(1), ctx.Input(2)
	switch {
	case bounds.Rank() != 1:
		return status.InvalidArgumentf("value_range should be a vector.")
	case bounds.NumElements() != 2:
		return status.InvalidArgumentf("value_range should be a vector of 2 elements.")
	case bins.Rank() != 0:
		return status.InvalidArgumentf("nbins should be a scalar.")
	}
	r, n := tensor.Values[T](bounds), intarg.Scalar(bins)
	if !(r[0] < r[1]) {
		return status.InvalidArgumentf("value_range should satisfy value_range[0] < value_range[1], but got '[%s, %s]'",
			short(float64(r[0])), short(float64(r[1])))
	}
	if n <= 0 {
		return status.InvalidArgumentf("nbins should be a positive number, but got '%d'", n)
	}
	out, err := ctx.Allocate(0, tensor.Shape{n})
	if err != nil {
		return err
	}
	x, counts := tensor.Values[T](values), membudget.Make[int64](n)
	if n == 1 {
		counts[0], x = int64(len(x)), nil
	}
	// Values between the bounds may not be representable in the type of the bounds, so everything
	// is computed in float64.
	from, step := float64(r[0]), float64(r[1])/float64(n)-float64(r[0])/float64(n)
	s := histogramBlocks.Get().(*histogramBlock)
	defer histogramBlocks.Put(s)
	for len(x) > 0 {
		block := s.positions[:min(len(s.positions), len(x))]
		clamped(s, block, x, r[0], r[1])
		simd.SubScalar(block, block, from)
		for i, b := range s.quotients(len(block), step) {
			if uint64(b) < uint64(len(counts)) {
				counts[b]++
				continue
			}
			if position := block[i]; position != position {
				return status.InvalidArgumentf("Histogram values must not contain NaN")
			}
			counts[n-1]++ // at the end of the range, or rounded beyond it
		}
		x = x[len(block):]
	}
	intarg.Set(out, counts)
	return nil
}

// histogramBlock holds the intermediate results for a block of values. It is allocated once,
// because local arrays that are passed to vector code escape to the heap.
type histogramBlock struct {
	singles           [1024]float32
	positions, scaled [1024]float64
	bins, upper       [1024]int32
}

// quotients divides the first n positions, which are not negative, by step and truncates. Two
// multiplications take less time than a division: one by slightly less than the reciprocal and one
// by slightly more. Both yield the same integer unless the quotient is next to an integer. A
// position is NaN if the value is NaN.
func (s *histogramBlock) quotients(n int, step float64) []int32 {
	const little, least = 1.0 / (1 << 50), 0x1p-1022
	positions, scaled, bins, upper := s.positions[:n], s.scaled[:n], s.bins[:n], s.upper[:n]
	if reciprocal := 1 / step; reciprocal < least || reciprocal > math.MaxFloat64 {
		simd.DivScalar(positions, positions, step)
		simd.Int32FromDouble(bins, positions)
		return bins
	}
	simd.MulScalar(scaled, positions, (1-little)/step)
	simd.Int32FromDouble(bins, scaled)
	simd.MulScalar(scaled, positions, (1+little)/step)
	simd.Int32FromDouble(upper, scaled)
	if s.bins != s.upper {
		for i, b := range upper {
			if b != bins[i] {
				bins[i] = int32(positions[i] / step)
			}
		}
	}
	return bins
}

var histogramBlocks = sync.Pool{New: func() any { return new(histogramBlock) }}

// clamped sets d to the first elements of x, clamped to the bounds. NaN stays NaN.
func clamped[T elementwise.Real](s *histogramBlock, d []float64, x []T, lo, hi T) {
	if singles, ok := any(x).([]float32); ok {
		simd.Clamp(s.singles[:len(d)], singles[:len(d)], float32(lo), float32(hi))
		simd.ToDouble(d, s.singles[:len(d)])
		return
	}
	for i := range d {
		d[i] = float64(clamp(x[i], lo, hi))
	}
}

// short formats a number with six significant digits, as TensorFlow's errors do.
func short(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }
