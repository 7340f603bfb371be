package mathops

import (
	"cmp"

	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/numeric/simd"
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "ClipByValue",
			Doc: "Clips elements to [clip_value_min, clip_value_max]. The bounds are scalars or have the " +
				"shape of t.",
			In:    []string{"t: T", "clip_value_min: T", "clip_value_max: T"},
			Out:   []string{"output: T"},
			Attrs: []string{"T: numbertype"},
			Shape: opdef.SameShape,
		},
		Kernels: byT(kernel.Table{
			tensor.Float32: clip(clampFloats[float32]), tensor.Float64: clip(clampFloats[float64]),
			tensor.Int8: clip(clampEach(clamp[int8])), tensor.Int16: clip(clampEach(clamp[int16])),
			tensor.Int32: clip(clampEach(clamp[int32])), tensor.Int64: clip(clampEach(clamp[int64])),
			tensor.Uint8: clip(clampEach(clamp[uint8])), tensor.Uint16: clip(clampEach(clamp[uint16])),
			tensor.Float16: clip(clampEach(func(v, lo, hi tensor.Float16Elem) tensor.Float16Elem {
				return tensor.Float16Of(clamp(v.Float32(), lo.Float32(), hi.Float32()))
			})),
			tensor.BFloat16: clip(clampEach(func(v, lo, hi tensor.BFloat16Elem) tensor.BFloat16Elem {
				return tensor.BFloat16Of(clamp(v.Float32(), lo.Float32(), hi.Float32()))
			})),
			tensor.Complex64:  clip(clampEach(clampComplex[complex64])),
			tensor.Complex128: clip(clampEach(clampComplex[complex128])),
		}),
	})
}

// clamp applies the upper bound first, so that the lower bound wins if lo > hi.
func clamp[T cmp.Ordered](v, lo, hi T) T {
	if hi < v {
		v = hi
	}
	if v < lo {
		v = lo
	}
	return v
}

// clampComplex clamps the real and imaginary parts separately.
func clampComplex[T elementwise.Complex](v, lo, hi T) T {
	x, a, b := complex128(v), complex128(lo), complex128(hi)
	return T(complex(clamp(real(x), real(a), real(b)), clamp(imag(x), imag(a), imag(b))))
}

// clampLoop clamps the elements of x. Each bound has one element or as many as x.
type clampLoop[T tensor.Elem] func(z, x, lo, hi []T)

func clampEach[T tensor.Elem](f func(v, lo, hi T) T) clampLoop[T] {
	return func(z, x, lo, hi []T) {
		for i, v := range x {
			z[i] = f(v, lo[min(i, len(lo)-1)], hi[min(i, len(hi)-1)])
		}
	}
}

// clampFloats uses vector code if both bounds are scalars.
func clampFloats[T simd.Float](z, x, lo, hi []T) {
	if len(lo) == 1 && len(hi) == 1 {
		simd.Clamp(z, x, lo[0], hi[0])
		return
	}
	for i, v := range x {
		z[i] = clamp(v, lo[min(i, len(lo)-1)], hi[min(i, len(hi)-1)])
	}
}

func clip[T tensor.Elem](loop clampLoop[T]) kernel.New {
	return kernel.Stateless(func(ctx *kernel.Context) error {
		t, lo, hi := ctx.Input(0), ctx.Input(1), ctx.Input(2)
		for _, bound := range []*tensor.Tensor{lo, hi} {
			if bound.Rank() != 0 && !bound.Shape().Equal(t.Shape()) {
				return status.InvalidArgumentf("clip_value_min and clip_value_max must be either of the same shape as input, or a scalar. "+
					"input shape: %vclip_value_min shape: %vclip_value_max shape: %v", t.Shape(), lo.Shape(), hi.Shape())
			}
		}
		x, los, his := tensor.Values[T](t), tensor.Values[T](lo), tensor.Values[T](hi)
		out, err := ctx.Forward(0, 0)
		if err != nil {
			return err
		}
		z := tensor.Values[T](out)
		parallel.For(len(z), elementwise.Grain(cheap), func(from, to int) {
			loop(z[from:to], x[from:to], boundsOf(los, from, to), boundsOf(his, from, to))
		})
		return nil
	})
}

// boundsOf returns elements from to to of bounds, or the scalar bound.
func boundsOf[T any](b []T, from, to int) []T {
	if len(b) == 1 {
		return b
	}
	return b[from:to]
}
