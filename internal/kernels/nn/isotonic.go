package nn

import (
	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	half := &isotonic[float32]{round: func(v float32) float32 { return tensor.Float16Of(v).Float32() }}
	bfloat := &isotonic[float32]{round: func(v float32) float32 { return tensor.BFloat16Of(v).Float32() }}
	single, double := &isotonic[float32]{}, &isotonic[float64]{}
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "IsotonicRegression",
			Doc:  "Computes isotonic regression: returns the non-increasing row with the smallest squared distance to each input row, and the index of the constant segment of each element.",
			In:   []string{"input: T"}, Out: []string{"output: output_dtype", "segments: int32"},
			Attrs: []string{"T: realnumbertype", "output_dtype: {float16, bfloat16, float32, float64} = float32"},
			Shape: opdef.SameShape,
		},
		Kernels: []kernel.Impl{
			isotonicImpl(half, tensor.Float16Elem.Float32, tensor.Float16Of),
			isotonicImpl(bfloat, tensor.BFloat16Elem.Float32, tensor.BFloat16Of),
			isotonicImpl(single, func(v float32) float32 { return v }, func(v float32) float32 { return v }),
			isotonicImpl(double, func(v float64) float64 { return v }, func(v float64) float64 { return v }),
			isotonicImpl(single, func(v int16) float32 { return float32(v) }, func(v float32) float32 { return v }),
			isotonicImpl(single, func(v int8) float32 { return float32(v) }, func(v float32) float32 { return v }),
			isotonicImpl(double, func(v int64) float64 { return float64(v) }, func(v float64) float64 { return v }),
			isotonicImpl(double, func(v int32) float64 { return float64(v) }, func(v float64) float64 { return v }),
		},
	})
}

// isotonic solves isotonic regression in type F.
type isotonic[F float32 | float64] struct {
	round func(F) F // rounds to the precision of sums and means; nil if that is the precision of F
}

func (o *isotonic[F]) rounded(v F) F {
	if o.round == nil {
		return v
	}
	return o.round(v)
}

// pool is a segment of a row: the elements from the end of the previous pool up to end, with their
// sum and their mean.
type pool[F float32 | float64] struct {
	end       int
	sum, mean F
}

// solve replaces a row by its solution. It uses the pool adjacent violators algorithm (Kruskal,
// 1964): every element starts as its own pool, and neighbours with increasing means are merged.
func (o *isotonic[F]) solve(row []F, segments []int32, pools []pool[F]) {
	pools = pools[:0]
	for i, v := range row {
		pools = membudget.Append(pools, pool[F]{end: i + 1, sum: v, mean: v})
		for n := len(pools); n > 1 && pools[n-1].mean > pools[n-2].mean; n-- {
			start := 0
			if n > 2 {
				start = pools[n-3].end
			}
			left, right := &pools[n-2], pools[n-1]
			left.end = right.end
			left.sum = o.rounded(left.sum + right.sum)
			left.mean = o.rounded(left.sum / o.rounded(F(left.end-start)))
			pools = pools[:n-1]
		}
	}
	at := 0
	for id, p := range pools {
		for ; at < p.end; at++ {
			row[at], segments[at] = p.mean, int32(id)
		}
	}
}

func isotonicImpl[In, Out tensor.Elem, F float32 | float64](o *isotonic[F], value func(In) F, elem func(F) Out) kernel.Impl {
	return kernel.Impl{
		Types: []kernel.Constraint{kernel.OfType("T", tensor.DTypeOf[In]()), kernel.OfType("output_dtype", tensor.DTypeOf[Out]())},
		New: kernel.Stateless(func(ctx *kernel.Context) error {
			in := ctx.Input(0)
			out, err := ctx.AllocateLike(0, in)
			if err != nil {
				return err
			}
			segments, err := ctx.AllocateLike(1, in)
			if err != nil {
				return err
			}
			width := 1
			if in.Rank() > 0 {
				width = in.Dim(in.Rank() - 1)
			}
			if width == 0 {
				return nil
			}
			x, z, ids := tensor.Values[In](in), tensor.Values[Out](out), tensor.Values[int32](segments)
			parallel.For(len(x)/width, max(1, 1000/width), func(lo, hi int) {
				row, pools := membudget.Make[F](width), membudget.MakeCap[pool[F]](width)
				for at := lo * width; at < hi*width; at += width {
					for i := range row {
						row[i] = value(x[at+i])
					}
					o.solve(row, ids[at:at+width], pools)
					for i, v := range row {
						z[at+i] = elem(v)
					}
				}
			})
			return nil
		}),
	}
}
