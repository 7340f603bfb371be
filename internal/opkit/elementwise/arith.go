package elementwise

import (
	"fmt"

	"github.com/weft-ml/weft/internal/numeric/simd"
	"github.com/weft-ml/weft/tensor"
)

// Op is a binary arithmetic operation of a variable update or scatter.
type Op uint8

// The operations. Assign returns the second operand.
const (
	Assign Op = iota
	Add
	Sub
	Mul
	Div
	Min
	Max
	// Minimum and Maximum return NaN if either operand is NaN, unlike Min and Max.
	Minimum
	Maximum
)

// Arithmetic returns the loop z = x op y for elements of type T. Integers wrap around. Integer
// division truncates, and the caller must have checked the divisor for zeros. Min and Max keep the
// first operand if a comparison with NaN fails, as TensorFlow's scatter operations do.
func Arithmetic[T tensor.Elem](op Op) func(z, x, y []T) {
	loop, ok := arithmetic[T](op).(func(z, x, y []T))
	if !ok {
		panic(fmt.Sprintf("elementwise: no arithmetic on %v", tensor.DTypeOf[T]()))
	}
	return loop
}

func arithmetic[T tensor.Elem](op Op) any {
	var z T
	switch any(z).(type) {
	case int8:
		return real2[int8](op)
	case int16:
		return real2[int16](op)
	case int32:
		return int2[int32](op)
	case int64:
		return int2[int64](op)
	case uint8:
		return real2[uint8](op)
	case uint16:
		return real2[uint16](op)
	case uint32:
		return real2[uint32](op)
	case uint64:
		return real2[uint64](op)
	case float32:
		return float2[float32](op)
	case float64:
		return float2[float64](op)
	case tensor.Float16Elem:
		return short2[tensor.Float16Elem](op)
	case tensor.BFloat16Elem:
		return short2[tensor.BFloat16Elem](op)
	case complex64:
		return number2[complex64](op)
	case complex128:
		return number2[complex128](op)
	case bool:
		if loop := bool2(op); loop != nil {
			return loop
		}
	}
	if op == Assign {
		return func(z, _, y []T) { copy(z, y) }
	}
	return nil
}

// bool2 returns the loop of TensorFlow's scatter operations on booleans, which treat them as the
// numbers 0 and 1.
func bool2(op Op) any {
	switch op {
	case Add:
		return func(z, x, y []bool) {
			for i := range z {
				z[i] = x[i] || y[i]
			}
		}
	case Sub:
		return func(z, x, y []bool) {
			for i := range z {
				z[i] = x[i] != y[i]
			}
		}
	default:
		return nil
	}
}

func short2[H Short](op Op) func(z, x, y []H) {
	if op == Assign {
		return func(z, _, y []H) { copy(z, y) }
	}
	return Via32Binary[H](float2[float32](op))
}

// float2 and int2 use vector code where it exists.
func float2[T simd.Float](op Op) func(z, x, y []T) {
	var vector func(z, x, y []T)
	switch op {
	case Add:
		vector = simd.Add[T]
	case Sub:
		vector = simd.Sub[T]
	case Mul:
		vector = simd.Mul[T]
	case Div:
		vector = simd.Div[T]
	default:
	}
	return unlessShort(real2[T](op), vector)
}

func int2[T simd.Int](op Op) func(z, x, y []T) {
	var vector func(z, x, y []T)
	switch op {
	case Add:
		vector = simd.AddInts[T]
	case Sub:
		vector = simd.SubInts[T]
	case Mul:
		vector = simd.MulInts[T]
	case Max:
		vector = simd.MaxInts[T]
	case Min:
		vector = simd.MinInts[T]
	default:
	}
	return unlessShort(real2[T](op), vector)
}

// unlessShort returns the vector loop, or the plain loop if vector is nil. For short rows it also
// runs the plain loop, because a call of vector code costs more than it saves there.
func unlessShort[T any](plain, vector func(z, x, y []T)) func(z, x, y []T) {
	if vector == nil {
		return plain
	}
	const short = 16
	return func(z, x, y []T) {
		if len(z) < short {
			plain(z, x, y)
		} else {
			vector(z, x, y)
		}
	}
}

func real2[T Real](op Op) func(z, x, y []T) {
	switch op {
	case Min:
		return Least[T]
	case Max:
		return Greatest[T]
	case Minimum:
		return minimum[T]
	case Maximum:
		return maximum[T]
	default:
		return number2[T](op)
	}
}

func number2[T Number](op Op) func(z, x, y []T) {
	switch op {
	case Add:
		return Sum[T]
	case Sub:
		return Difference[T]
	case Mul:
		return Product[T]
	case Div:
		return Quotient[T]
	case Assign:
		return func(z, _, y []T) { copy(z, y) }
	default:
		return nil
	}
}

// Sum sets z to x + y.
func Sum[T Number](z, x, y []T) {
	x, y = x[:len(z)], y[:len(z)]
	for i := range z {
		z[i] = x[i] + y[i]
	}
}

// Difference sets z to x - y.
func Difference[T Number](z, x, y []T) {
	x, y = x[:len(z)], y[:len(z)]
	for i := range z {
		z[i] = x[i] - y[i]
	}
}

// Product sets z to x * y.
func Product[T Number](z, x, y []T) {
	x, y = x[:len(z)], y[:len(z)]
	for i := range z {
		z[i] = x[i] * y[i]
	}
}

// Quotient sets z to x / y.
func Quotient[T Number](z, x, y []T) {
	x, y = x[:len(z)], y[:len(z)]
	for i := range z {
		z[i] = x[i] / y[i]
	}
}

// Least sets each element of z to y if y is less than x, and otherwise to x.
func Least[T Real](z, x, y []T) {
	x, y = x[:len(z)], y[:len(z)]
	for i := range z {
		v := x[i]
		if y[i] < v {
			v = y[i]
		}
		z[i] = v
	}
}

// Greatest sets each element of z to y if y is greater than x, and otherwise to x.
func Greatest[T Real](z, x, y []T) {
	x, y = x[:len(z)], y[:len(z)]
	for i := range z {
		v := x[i]
		if y[i] > v {
			v = y[i]
		}
		z[i] = v
	}
}

func minimum[T Real](z, x, y []T) {
	x, y = x[:len(z)], y[:len(z)]
	for i := range z {
		z[i] = min(x[i], y[i])
	}
}

func maximum[T Real](z, x, y []T) {
	x, y = x[:len(z)], y[:len(z)]
	for i := range z {
		z[i] = max(x[i], y[i])
	}
}
