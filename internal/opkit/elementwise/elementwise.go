// Package elementwise applies scalar functions to whole tensors: to one input, or to two that are
// broadcast against each other by NumPy's rules. A function is a loop over slices of equal length,
// so that an indirect call is paid once per row. The output slice may alias an input. Results are
// written in place if this step holds the only reference to an input. Large tensors are split
// between cores.
//
// The 16-bit floating-point types compute in float32 and round once per operation.
package elementwise

import (
	"maps"

	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/tensor"
)

// Constraints for the Go types that have arithmetic.
type (
	// Signed is the constraint of signed integers.
	Signed interface{ int8 | int16 | int32 | int64 }
	// Unsigned is the constraint of unsigned integers.
	Unsigned interface {
		uint8 | uint16 | uint32 | uint64
	}
	// Integer is the constraint of all integers.
	Integer interface{ Signed | Unsigned }
	// Float is the constraint of float32 and float64.
	Float interface{ float32 | float64 }
	// Complex is the constraint of complex types.
	Complex interface{ complex64 | complex128 }
	// Real is the constraint of integers and real floating-point types.
	Real interface{ Integer | Float }
	// Number is the constraint of all types with arithmetic.
	Number interface{ Real | Complex }
)

// Grain returns the smallest number of elements worth a block of its own on another core. cost is
// the time per element in nanoseconds.
func Grain(cost float64) int { return int(max(1, 20_000/max(cost, 0.1))) }

// evenGrain returns the block size that divides n elements into equal blocks, as many as blocks of
// size grain and a remainder would be. The size is a multiple of 64 elements, so that a block
// covers whole cache lines.
func evenGrain(n, grain int) int {
	const line = 64
	blocks := (n + grain - 1) / grain
	return ((n+blocks-1)/blocks + line - 1) &^ (line - 1)
}

// Unary returns the kernel of an operation on one input whose output has the input's shape. cost is
// the time per element in nanoseconds.
func Unary[T, R tensor.Elem](cost float64, loop func(z []R, x []T)) kernel.New {
	grain := Grain(cost)
	return kernel.Stateless(func(ctx *kernel.Context) error {
		x := tensor.Values[T](ctx.Input(0))
		out, err := ctx.Forward(0, 0)
		if err != nil {
			return err
		}
		z := tensor.Values[R](out)
		if len(z) <= grain {
			loop(z, x)
			return nil
		}
		parallel.For(len(z), evenGrain(len(z), grain), func(lo, hi int) { loop(z[lo:hi], x[lo:hi]) })
		return nil
	})
}

// Map returns the loop that applies f to each element.
func Map[T, R tensor.Elem](f func(T) R) func(z []R, x []T) {
	return func(z []R, x []T) {
		for i, v := range x[:len(z)] {
			z[i] = f(v)
		}
	}
}

// Map32 returns the loop over float32 elements that applies a float64 function and rounds once.
func Map32(f func(float64) float64) func(z, x []float32) {
	return func(z, x []float32) {
		for i, v := range x[:len(z)] {
			z[i] = float32(f(float64(v)))
		}
	}
}

// Map2 returns the loop that applies f to each pair of elements.
func Map2[T, R tensor.Elem](f func(x, y T) R) func(z []R, x, y []T) {
	return func(z []R, x, y []T) {
		x, y = x[:len(z)], y[:len(z)]
		for i := range z {
			z[i] = f(x[i], y[i])
		}
	}
}

// Map232 returns the loop over float32 pairs that applies a float64 function and rounds once.
func Map232(f func(x, y float64) float64) func(z, x, y []float32) {
	return func(z, x, y []float32) {
		x, y = x[:len(z)], y[:len(z)]
		for i := range z {
			z[i] = float32(f(float64(x[i]), float64(y[i])))
		}
	}
}

// Floats returns the kernels of a unary float64 function for all real floating-point types.
func Floats(cost float64, f func(float64) float64) kernel.Table {
	return FloatLoops(cost, Map32(f), Map(f))
}

// FloatLoops returns the kernels of loops over float32 and float64 for all real floating-point
// types.
func FloatLoops(cost float64, loop32 func(z, x []float32), loop64 func(z, x []float64)) kernel.Table {
	return kernel.Table{
		tensor.Float16:  Unary(cost+3, Via32[tensor.Float16Elem](loop32)),
		tensor.BFloat16: Unary(cost+2, Via32[tensor.BFloat16Elem](loop32)),
		tensor.Float32:  Unary(cost, loop32),
		tensor.Float64:  Unary(cost, loop64),
	}
}

// Floats2 returns the kernels of a binary float64 function, with broadcasting, for all real
// floating-point types.
func Floats2(cost float64, f func(x, y float64) float64) kernel.Table {
	return FloatLoops2(cost, Map232(f), Map2(f))
}

// FloatLoops2 returns the kernels of binary loops over float32 and float64, with broadcasting, for
// all real floating-point types.
func FloatLoops2(cost float64, loop32 func(z, x, y []float32), loop64 func(z, x, y []float64)) kernel.Table {
	return kernel.Table{
		tensor.Float16:  Loops[tensor.Float16Elem, tensor.Float16Elem]{Each: Via32Binary[tensor.Float16Elem](loop32), Cost: cost + 4}.Kernel(),
		tensor.BFloat16: Loops[tensor.BFloat16Elem, tensor.BFloat16Elem]{Each: Via32Binary[tensor.BFloat16Elem](loop32), Cost: cost + 3}.Kernel(),
		tensor.Float32:  Loops[float32, float32]{Each: loop32, Cost: cost}.Kernel(),
		tensor.Float64:  Loops[float64, float64]{Each: loop64, Cost: cost}.Kernel(),
	}
}

// Complexes returns the kernels of a unary complex128 function for both complex types.
func Complexes(cost float64, f func(complex128) complex128) kernel.Table {
	return kernel.Table{
		tensor.Complex64:  Unary(cost, Map(func(x complex64) complex64 { return complex64(f(complex128(x))) })),
		tensor.Complex128: Unary(cost, Map(f)),
	}
}

// Complexes2 returns the kernels of a binary complex128 function, with broadcasting, for both
// complex types.
func Complexes2(cost float64, f func(x, y complex128) complex128) kernel.Table {
	narrow := Map2(func(x, y complex64) complex64 { return complex64(f(complex128(x), complex128(y))) })
	return kernel.Table{
		tensor.Complex64:  Loops[complex64, complex64]{Each: narrow, Cost: cost}.Kernel(),
		tensor.Complex128: Loops[complex128, complex128]{Each: Map2(f), Cost: cost}.Kernel(),
	}
}

// Union returns a table with the rows of all tables.
func Union(tables ...kernel.Table) kernel.Table {
	out := kernel.Table{}
	for _, t := range tables {
		maps.Copy(out, t)
	}
	return out
}
