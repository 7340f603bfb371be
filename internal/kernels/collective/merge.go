package collective

import (
	"cmp"

	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/tensor"
)

// mergeOf returns a function that sets acc to acc op x, and TensorFlow's name for it.
func mergeOf(op string) (func(acc, x *tensor.Tensor), string) {
	switch op {
	case "Min":
		return func(acc, x *tensor.Tensor) { extreme(acc, x, -1) }, "Minimum"
	case "Max":
		return func(acc, x *tensor.Tensor) { extreme(acc, x, +1) }, "Maximum"
	case "Mul":
		return func(acc, x *tensor.Tensor) { elementwise.Accumulate(elementwise.Mul, acc, x) }, op
	}
	return func(acc, x *tensor.Tensor) { elementwise.Accumulate(elementwise.Add, acc, x) }, op
}

// extreme sets acc to the larger of acc and x, or the smaller for a negative sign. A NaN wins over
// every number.
func extreme(acc, x *tensor.Tensor, sign int) {
	switch acc.DType() {
	case tensor.Float32:
		pick[float32](acc, x, sign)
	case tensor.Float64:
		pick[float64](acc, x, sign)
	case tensor.Int32:
		pick[int32](acc, x, sign)
	case tensor.Int64:
		pick[int64](acc, x, sign)
	case tensor.Float16:
		pickShort[tensor.Half](acc, x, sign)
	case tensor.BFloat16:
		pickShort[tensor.BFloat](acc, x, sign)
	}
}

type number interface {
	tensor.Elem
	float32 | float64 | int32 | int64
}

func pick[T number](acc, x *tensor.Tensor, sign int) {
	a, b := tensor.Values[T](acc), tensor.Values[T](x)
	inBlocks(len(a), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			if sign < 0 {
				a[i] = min(a[i], b[i])
			} else {
				a[i] = max(a[i], b[i])
			}
		}
	})
}

// short is a floating type of 16 bits.
type short interface {
	tensor.Elem
	Float32() float32
}

func pickShort[T short](acc, x *tensor.Tensor, sign int) {
	a, b := tensor.Values[T](acc), tensor.Values[T](x)
	inBlocks(len(a), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			u, v := a[i].Float32(), b[i].Float32()
			if v != v || cmp.Compare(v, u) == sign && u == u {
				a[i] = b[i]
			}
		}
	})
}

func inBlocks(n int, f func(lo, hi int)) { parallel.For(n, elementwise.Grain(0.5), f) }

// divide sets acc to acc / n.
func divide(acc *tensor.Tensor, n int) {
	switch acc.DType() {
	case tensor.Float32:
		divideBy(acc, float32(n))
	case tensor.Float64:
		divideBy(acc, float64(n))
	case tensor.Int32:
		divideBy(acc, int32(n))
	case tensor.Int64:
		divideBy(acc, int64(n))
	case tensor.Float16:
		divideShort(acc, n, tensor.HalfOf)
	case tensor.BFloat16:
		divideShort(acc, n, tensor.BFloatOf)
	}
}

func divideBy[T number](acc *tensor.Tensor, n T) {
	a := tensor.Values[T](acc)
	inBlocks(len(a), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			a[i] /= n
		}
	})
}

func divideShort[T short](acc *tensor.Tensor, n int, round func(float32) T) {
	a := tensor.Values[T](acc)
	by := round(float32(n)).Float32()
	inBlocks(len(a), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			a[i] = round(a[i].Float32() / by)
		}
	})
}
