package mathops

import (
	"math"

	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	wide := func(f func(float64) float64) func(float32) float32 {
		return func(x float32) float32 { return float32(f(float64(x))) }
	}
	// The square of a complex number is its product with its conjugate. The imaginary part is 0 or
	// NaN.
	t := kernel.Table{
		tensor.Float32: norm(func(x float32) float32 { return x * x }, wide(math.Sqrt), sums[float32]()),
		tensor.Float64: norm(func(x float64) float64 { return x * x }, math.Sqrt, sums[float64]()),
		tensor.Complex64: norm(func(x complex64) complex64 {
			p := real(x) * imag(x)
			return complex(real(x)*real(x)+imag(x)*imag(x), p-p)
		}, func(x complex64) complex64 { return complex(wide(math.Sqrt)(real(x)), imag(x)) },
			reduction[complex64]{row: total[complex64], columns: accumulateInto[complex64]}),
		tensor.Complex128: norm(func(x complex128) complex128 {
			p := real(x) * imag(x)
			return complex(real(x)*real(x)+imag(x)*imag(x), p-p)
		}, func(x complex128) complex128 { return complex(math.Sqrt(real(x)), imag(x)) },
			reduction[complex128]{row: total[complex128], columns: accumulateInto[complex128]}),
	}
	shortNorm[tensor.Float16Elem](t, 65519) // half values are squared in half precision
	shortNorm[tensor.BFloat16Elem](t, math.MaxFloat32)
	intNorm[int8](t)
	intNorm[int16](t)
	intNorm[int32](t)
	intNorm[int64](t)
	intNorm[uint8](t)
	intNorm[uint16](t)
	intNorm[uint32](t)
	intNorm[uint64](t)
	reducing("EuclideanNorm", "Computes the square root of the sum of squares of elements along dimensions.", "numbertype", t)
}

// norm returns the kernel that sums squares and takes the square root.
func norm[T tensor.Elem](square, root func(T) T, sum reduction[T]) kernel.New {
	sum.finish = func(acc T, _ int) T { return root(acc) }
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		keep := c.Attrs.Bool("keep_dims")
		return kernel.Func(func(ctx *kernel.Context) error {
			in := ctx.Input(0)
			d, err := newDirections(in.Shape(), ctx.Input(1), keep)
			if err != nil {
				return err
			}
			squares, err := tensor.AllocShared(in.DType(), in.Shape())
			if err != nil {
				return err
			}
			defer squares.Release()
			elementwise.Map(square)(tensor.Values[T](&squares), tensor.Values[T](in))
			out, err := ctx.Allocate(0, d.out)
			if err != nil {
				return err
			}
			return sum.run(&squares, out, d)
		}), nil
	}
}

func intNorm[T elementwise.Integer](t kernel.Table) {
	t[tensor.DTypeOf[T]()] = norm(func(x T) T { return x * x }, func(x T) T { return T(math.Sqrt(float64(x))) },
		reduction[T]{row: total[T], columns: accumulateInto[T]})
}

// shortNorm computes the norm of a 16-bit type in float32. Squares and sums larger than largest
// become infinite.
func shortNorm[H elementwise.Short](t kernel.Table, largest float32) {
	bounded := func(x float32) float32 {
		if x > largest {
			return float32(math.Inf(1))
		}
		return x
	}
	sum := sums[float32]()
	sum.finish = func(acc float32, _ int) float32 { return float32(math.Sqrt(float64(bounded(acc)))) }
	squares := func(z []float32, x []H) {
		elementwise.Widen(z, x)
		for i, v := range z {
			z[i] = bounded(v * v)
		}
	}
	t[tensor.DTypeOf[H]()] = via(sum, squares, elementwise.Narrow[H])
}
