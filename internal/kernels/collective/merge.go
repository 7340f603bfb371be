package collective

import (
	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/tensor"
)

// mergeOf returns a function that sets acc to acc op x, and TensorFlow's name for it. The minimum
// or maximum of a number and NaN is NaN.
func mergeOf(op string) (func(acc, x *tensor.Tensor), string) {
	merge, name := elementwise.Add, op
	switch op {
	case "Min":
		merge, name = elementwise.Minimum, "Minimum"
	case "Max":
		merge, name = elementwise.Maximum, "Maximum"
	case "Mul":
		merge = elementwise.Mul
	}
	return func(acc, x *tensor.Tensor) { elementwise.Accumulate(merge, acc, x) }, name
}

type number interface {
	tensor.Elem
	float32 | float64 | int32 | int64
}

// short is the constraint for 16-bit floating-point types.
type short interface {
	tensor.Elem
	Float32() float32
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
		divideShort(acc, n, tensor.Float16Of)
	case tensor.BFloat16:
		divideShort(acc, n, tensor.BFloat16Of)
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
