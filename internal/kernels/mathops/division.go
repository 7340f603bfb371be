package mathops

import (
	"slices"

	"github.com/weft-ml/weft/internal/numeric/simd"
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// rounding is a kind of integer division or remainder.
type rounding int

const (
	truncateQuotient rounding = iota
	floorQuotient
	truncateRemainder
	floorRemainder
)

// errDivideByZero is the error for a zero divisor.
var errDivideByZero = status.InvalidArgumentf("Integer division by zero")

// errUnexpected is TensorFlow's error for a zero divisor in the truncating forms.
var errUnexpected = status.Internalf("Unexpected error in binary operator (only integer div and mod should have errors)")

// integers returns the kernels of a kind of division for all integer types. A zero divisor is the
// error byZero.
func integers(kind rounding, byZero error) kernel.Table {
	t := kernel.Table{}
	integer[int8](t, kind, byZero)
	integer[int16](t, kind, byZero)
	row(t, elementwise.Loops[int32, int32]{Each: vectorDivision(kind), Check: nonZero[int32](byZero), Cost: 0.7})
	integer[int64](t, kind, byZero)
	integer[uint8](t, kind, byZero)
	integer[uint16](t, kind, byZero)
	integer[uint32](t, kind, byZero)
	integer[uint64](t, kind, byZero)
	return t
}

func integer[T interface {
	elementwise.Integer
	tensor.Elem
}](t kernel.Table, kind rounding, byZero error) {
	var f func(x, y T) T
	switch kind {
	case truncateQuotient:
		f = func(x, y T) T { return x / y }
	case floorQuotient:
		f = floorQuotientOf[T]
	case truncateRemainder:
		f = func(x, y T) T { return x % y }
	case floorRemainder:
		f = floorRemainderOf[T]
	}
	row(t, elementwise.Loops[T, T]{Each: elementwise.Map2(f), Check: nonZero[T](byZero), Cost: medium})
}

// nonZero returns a check that no divisor is zero.
func nonZero[T elementwise.Integer](byZero error) func(y []T) error {
	return func(y []T) error {
		if slices.Contains(y, 0) {
			return byZero
		}
		return nil
	}
}

func vectorDivision(kind rounding) func(z, x, y []int32) {
	switch kind {
	case truncateQuotient:
		return simd.Quotients
	case floorQuotient:
		return simd.FloorQuotients
	case truncateRemainder:
		return simd.Remainders
	default:
		return simd.FloorRemainders
	}
}

func floorQuotientOf[T elementwise.Integer](x, y T) T {
	q := x / y
	if x%y != 0 && (x < 0) != (y < 0) {
		q--
	}
	return q
}

func floorRemainderOf[T elementwise.Integer](x, y T) T {
	m := x % y
	if m != 0 && (m < 0) != (y < 0) {
		m += y
	}
	return m
}
