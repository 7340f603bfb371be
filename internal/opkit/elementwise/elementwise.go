// Package elementwise runs functions of single elements over whole tensors: with one input, or with
// two that are broadcast against each other by NumPy's rules. A function is given as a loop over
// slices of equal length, so that the cost of an indirect call is paid per row; an output slice may
// be the memory of an input. Results are written in place where an input belongs to nobody else,
// and large tensors are shared between cores.
//
// The 16-bit floating types compute in float32 and round once per operation.
package elementwise

import (
	"maps"

	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/tensor"
)

// Sets of Go types that arithmetic is written for.
type (
	// Signed are the signed integers.
	Signed interface{ int8 | int16 | int32 | int64 }
	// Unsigned are the unsigned integers.
	Unsigned interface {
		uint8 | uint16 | uint32 | uint64
	}
	// Integer are all integers.
	Integer interface{ Signed | Unsigned }
	// Float are the real floating types.
	Float interface{ float32 | float64 }
	// Complex are the complex types.
	Complex interface{ complex64 | complex128 }
	// Real are integers and real floating types.
	Real interface{ Integer | Float }
	// Number are all types with arithmetic.
	Number interface{ Real | Complex }
)

// Grain returns how many elements, of cost nanoseconds each, make a block worth giving to another
// core.
func Grain(cost float64) int { return int(max(1, 20_000/max(cost, 0.1))) }

// even returns the size of the blocks that n elements are cut into where there would be blocks of
// grain and a rest: as many, but equal, and whole cache lines.
func even(n, grain int) int {
	const line = 64
	blocks := (n + grain - 1) / grain
	return ((n+blocks-1)/blocks + line - 1) &^ (line - 1)
}

// Unary returns the kernel of an operation on one input that has the output's shape. cost is the
// time per element in nanoseconds.
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
		parallel.For(len(z), even(len(z), grain), func(lo, hi int) { loop(z[lo:hi], x[lo:hi]) })
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

// Map32 returns the loop over float32 elements of a function of float64, rounded once.
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

// Map232 returns the loop over float32 pairs of a function of float64, rounded once.
func Map232(f func(x, y float64) float64) func(z, x, y []float32) {
	return func(z, x, y []float32) {
		x, y = x[:len(z)], y[:len(z)]
		for i := range z {
			z[i] = float32(f(float64(x[i]), float64(y[i])))
		}
	}
}

// Floats returns kernels for all real floating types of a function of one float64.
func Floats(cost float64, f func(float64) float64) kernel.Table {
	return FloatLoops(cost, Map32(f), Map(f))
}

// FloatLoops returns kernels for all real floating types from loops over float32 and float64.
func FloatLoops(cost float64, loop32 func(z, x []float32), loop64 func(z, x []float64)) kernel.Table {
	return kernel.Table{
		tensor.Float16:  Unary(cost+3, Via32[tensor.Half](loop32)),
		tensor.BFloat16: Unary(cost+2, Via32[tensor.BFloat](loop32)),
		tensor.Float32:  Unary(cost, loop32),
		tensor.Float64:  Unary(cost, loop64),
	}
}

// Floats2 returns kernels for all real floating types of a function of two float64, broadcast.
func Floats2(cost float64, f func(x, y float64) float64) kernel.Table {
	return FloatLoops2(cost, Map232(f), Map2(f))
}

// FloatLoops2 returns kernels for all real floating types from loops over float32 and float64,
// broadcast.
func FloatLoops2(cost float64, loop32 func(z, x, y []float32), loop64 func(z, x, y []float64)) kernel.Table {
	return kernel.Table{
		tensor.Float16:  Loops[tensor.Half, tensor.Half]{Each: Via32Binary[tensor.Half](loop32), Cost: cost + 4}.Kernel(),
		tensor.BFloat16: Loops[tensor.BFloat, tensor.BFloat]{Each: Via32Binary[tensor.BFloat](loop32), Cost: cost + 3}.Kernel(),
		tensor.Float32:  Loops[float32, float32]{Each: loop32, Cost: cost}.Kernel(),
		tensor.Float64:  Loops[float64, float64]{Each: loop64, Cost: cost}.Kernel(),
	}
}

// Complexes returns kernels for both complex types of a function of one complex128.
func Complexes(cost float64, f func(complex128) complex128) kernel.Table {
	return kernel.Table{
		tensor.Complex64:  Unary(cost, Map(func(x complex64) complex64 { return complex64(f(complex128(x))) })),
		tensor.Complex128: Unary(cost, Map(f)),
	}
}

// Complexes2 returns kernels for both complex types of a function of two complex128, broadcast.
func Complexes2(cost float64, f func(x, y complex128) complex128) kernel.Table {
	narrow := Map2(func(x, y complex64) complex64 { return complex64(f(complex128(x), complex128(y))) })
	return kernel.Table{
		tensor.Complex64:  Loops[complex64, complex64]{Each: narrow, Cost: cost}.Kernel(),
		tensor.Complex128: Loops[complex128, complex128]{Each: Map2(f), Cost: cost}.Kernel(),
	}
}

// Union returns the rows of all tables.
func Union(tables ...kernel.Table) kernel.Table {
	out := kernel.Table{}
	for _, t := range tables {
		maps.Copy(out, t)
	}
	return out
}
