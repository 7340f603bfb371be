package nn

import (
	"math"

	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/numeric/simd"
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "BiasAddGrad", Doc: "Sums out_backprop over all dimensions except the channel dimension.",
			In: []string{"out_backprop: T"}, Out: []string{"output: T"},
			Attrs: []string{"T: numbertype", dataFormat2D}, Shape: biasAddGradShape,
		},
		Kernels: kernel.ByType("T", kernel.Table{
			tensor.Float32: biasAddGrad(floatSums[float32]()), tensor.Float64: biasAddGrad(floatSums[float64]()),
			tensor.Float16: biasAddGrad(shortSums(tensor.Float16Of)), tensor.BFloat16: biasAddGrad(shortSums(tensor.BFloat16Of)),
			tensor.Int8: biasAddGrad(plainSums[int8]()), tensor.Int16: biasAddGrad(plainSums[int16]()),
			tensor.Int32: biasAddGrad(plainSums[int32]()), tensor.Int64: biasAddGrad(plainSums[int64]()),
			tensor.Uint8: biasAddGrad(plainSums[uint8]()), tensor.Uint16: biasAddGrad(plainSums[uint16]()),
			tensor.Uint32: biasAddGrad(plainSums[uint32]()), tensor.Uint64: biasAddGrad(plainSums[uint64]()),
			tensor.Complex64: biasAddGrad(plainSums[complex64]()), tensor.Complex128: biasAddGrad(plainSums[complex128]()),
		}),
	})
}

func biasAddGradShape(c *opdef.ShapeContext) error {
	s, channels, err := biasInput(c)
	c.SetAll(tensor.MakePartial(s.Dim(channels)))
	return err
}

// sums describes how elements of type T are summed over all dimensions but one, in accumulators of
// type A.
type sums[T tensor.Elem, A any] struct {
	rows func(acc []A, x []T) // adds rows of len(acc) elements to the accumulators
	// adds a few rows of len(z) elements to z without accumulators; nil to always use rows
	direct func(z, x []T)
	values func(x []T) A
	add    func(a, b A) A
	round  func(A) T
}

func floatSums[T simd.Float]() sums[T, float64] {
	return sums[T, float64]{
		rows: func(acc []float64, x []T) {
			part := membudget.Make[T](len(acc))
			simd.SumColumns(part, x)
			for i, v := range part {
				acc[i] += float64(v)
			}
		},
		direct: simd.SumColumns[T],
		values: simd.Sum64[T],
		add:    func(a, b float64) float64 { return a + b },
		round:  func(a float64) T { return T(a) },
	}
}

func shortSums[H elementwise.Short](round func(float32) H) sums[H, float64] {
	return sums[H, float64]{
		rows: func(acc []float64, x []H) {
			row := membudget.Make[float32](len(acc))
			for ; len(x) > 0; x = x[len(acc):] {
				elementwise.Widen(row, x)
				for i, v := range row {
					acc[i] += float64(v)
				}
			}
		},
		values: func(x []H) float64 {
			block, sum := membudget.Make[float32](min(len(x), scratchLen)), 0.0
			for len(x) > 0 {
				n := min(len(x), scratchLen)
				elementwise.Widen(block[:n], x)
				sum += simd.Sum64(block[:n])
				x = x[n:]
			}
			return sum
		},
		add:   func(a, b float64) float64 { return a + b },
		round: func(a float64) H { return round(float32(a)) },
	}
}

func plainSums[T interface {
	elementwise.Number
	tensor.Elem
}]() sums[T, T] {
	return sums[T, T]{
		rows: func(acc []T, x []T) {
			for ; len(x) > 0; x = x[len(acc):] {
				elementwise.Sum(acc, acc, x)
			}
		},
		values: func(x []T) (sum T) {
			for _, v := range x {
				sum += v
			}
			return sum
		},
		add:   func(a, b T) T { return a + b },
		round: func(a T) T { return a },
	}
}

func biasAddGrad[T tensor.Elem, A any](s sums[T, A]) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		first := channelsFirst(c.Attrs)
		return kernel.Func(func(ctx *kernel.Context) error {
			in := ctx.Input(0)
			if in.Rank() < 2 {
				return status.InvalidArgumentf("Input tensor must be at least 2D: %v", in.Shape())
			}
			if in.NumElements() >= math.MaxInt32 {
				return status.InvalidArgumentf("BiasGrad requires tensor size <= int32 max")
			}
			l := layoutOf(in.Shape(), first)
			out, err := ctx.Allocate(0, tensor.Shape{int64(l.channels)})
			if err != nil {
				return err
			}
			x, z := tensor.Values[T](in), tensor.Values[T](out)
			if s.direct != nil && l.inner == 1 && l.outer <= rowGrainOf(l) {
				clear(z)
				s.direct(z, x)
				return nil
			}
			for i, v := range s.byChannel(x, l) {
				z[i] = s.round(v)
			}
			return nil
		}), nil
	}
}

// rowsAtOnce is the largest number of rows that are added in the precision of the elements.
const rowsAtOnce = 4096

// rowGrainOf returns the number of rows that one core adds when the channels are last.
func rowGrainOf(l channelLayout) int { return min(rowsAtOnce, max(1, sumGrain/max(l.channels, 1))) }

// byChannel returns the sum of each channel.
func (s sums[T, A]) byChannel(x []T, l channelLayout) []A {
	total := membudget.Make[A](l.channels)
	if len(x) == 0 {
		return total
	}
	if l.inner > 1 {
		parallel.For(l.channels, max(1, sumGrain/(l.inner*l.outer)), func(lo, hi int) {
			for c := lo; c < hi; c++ {
				for o := range l.outer {
					at := (o*l.channels + c) * l.inner
					total[c] = s.add(total[c], s.values(x[at:at+l.inner]))
				}
			}
		})
		return total
	}
	grain := rowGrainOf(l)
	parts := membudget.Make[A](parallel.Blocks(l.outer, grain) * l.channels)
	parallel.For(l.outer, grain, func(lo, hi int) {
		at := lo / grain * l.channels
		s.rows(parts[at:at+l.channels], x[lo*l.channels:hi*l.channels])
	})
	for ; len(parts) > 0; parts = parts[l.channels:] {
		for i, v := range parts[:l.channels] {
			total[i] = s.add(total[i], v)
		}
	}
	return total
}
