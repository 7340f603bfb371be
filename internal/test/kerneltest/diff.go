package kerneltest

import (
	"fmt"
	"math"

	"github.com/weft-ml/weft/tensor"
)

// tolerances are the default relative and absolute errors of outputs. They allow another order of
// summation and another elementary function.
var tolerances = map[tensor.DType]float64{
	tensor.Float32: 2e-6, tensor.Complex64: 4e-6, tensor.Float64: 1e-13, tensor.Complex128: 1e-13,
	tensor.Float16: 1e-3, tensor.BFloat16: 8e-3,
}

// Diff describes how got differs from want. It returns "" if they are equal. Floating-point
// elements may differ by a relative and absolute error of tol, or of a default for the type if tol
// is 0. NaN equals NaN.
func Diff(got, want *tensor.Tensor, tol float64) string {
	if got.DType() != want.DType() {
		return fmt.Sprintf("type %v, want %v", got.DType(), want.DType())
	}
	if !got.Shape().Equal(want.Shape()) {
		return fmt.Sprintf("shape %v, want %v", got.Shape(), want.Shape())
	}
	if tol == 0 {
		tol = tolerances[got.DType()]
	}
	a, b := elements(got), elements(want)
	for i := range a {
		if !near(a[i], b[i], tol) {
			return fmt.Sprintf("element %d is %v, want %v\n got %v\nwant %v", i, a[i], b[i], clip(a), clip(b))
		}
	}
	return ""
}

func clip(v []any) string {
	if len(v) > 40 {
		return fmt.Sprint(v[:40]) + "…"
	}
	return fmt.Sprint(v)
}

func near(a, b any, tol float64) bool {
	switch x := a.(type) {
	case float64:
		return nearFloat(x, b.(float64), tol)
	case complex128:
		y := b.(complex128)
		size := max(math.Abs(real(y)), math.Abs(imag(y)), 1)
		if math.IsInf(size, 0) || math.IsNaN(size) {
			size = 1
		}
		return nearFloat(real(x), real(y), tol*size) && nearFloat(imag(x), imag(y), tol*size)
	}
	return a == b
}

func nearFloat(x, y, tol float64) bool {
	switch {
	case math.IsNaN(x) || math.IsNaN(y):
		return math.IsNaN(x) && math.IsNaN(y)
	case math.IsInf(x, 0) || math.IsInf(y, 0):
		return x == y
	}
	return math.Abs(x-y) <= tol+tol*math.Abs(y)
}

// elements returns the elements, with all real floating-point types as float64 and complex types as
// complex128.
func elements(t *tensor.Tensor) []any {
	switch t.DType() {
	case tensor.Float32:
		return each(t, func(v float32) any { return float64(v) })
	case tensor.Float64:
		return each(t, func(v float64) any { return v })
	case tensor.Float16:
		return each(t, func(v tensor.Float16Elem) any { return float64(v.Float32()) })
	case tensor.BFloat16:
		return each(t, func(v tensor.BFloat16Elem) any { return float64(v.Float32()) })
	case tensor.Complex64:
		return each(t, func(v complex64) any { return complex128(v) })
	case tensor.Complex128:
		return each(t, func(v complex128) any { return v })
	case tensor.String:
		return each(t, func(v string) any { return v })
	case tensor.Bool:
		return each(t, func(v bool) any { return v })
	case tensor.Int64:
		return each(t, func(v int64) any { return v })
	}
	return bytewise(t)
}

// bytewise compares the elements of the remaining types byte by byte.
func bytewise(t *tensor.Tensor) []any {
	as := map[int]tensor.DType{1: tensor.Int8, 2: tensor.Int16, 4: tensor.Int32, 8: tensor.Int64}[t.DType().Size()]
	u, err := t.WithDType(as)
	if err != nil {
		return []any{err}
	}
	switch as {
	case tensor.Int8:
		return each(&u, func(v int8) any { return v })
	case tensor.Int16:
		return each(&u, func(v int16) any { return v })
	case tensor.Int32:
		return each(&u, func(v int32) any { return v })
	default:
		return each(&u, func(v int64) any { return v })
	}
}

func each[T tensor.Elem](t *tensor.Tensor, f func(T) any) []any {
	vals := tensor.Values[T](t)
	out := make([]any, len(vals))
	for i, v := range vals {
		out[i] = f(v)
	}
	return out
}
