package elementwise

import (
	"fmt"

	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/tensor"
)

// Accumulate sets acc to acc op x, element by element, for tensors of one numeric type and number
// of elements.
func Accumulate(op Op, acc, x *tensor.Tensor) {
	switch acc.DType() {
	case tensor.Float32:
		accumulate[float32](op, acc, x)
	case tensor.Float64:
		accumulate[float64](op, acc, x)
	case tensor.Float16:
		accumulate[tensor.Half](op, acc, x)
	case tensor.BFloat16:
		accumulate[tensor.BFloat](op, acc, x)
	case tensor.Int8:
		accumulate[int8](op, acc, x)
	case tensor.Int16:
		accumulate[int16](op, acc, x)
	case tensor.Int32:
		accumulate[int32](op, acc, x)
	case tensor.Int64:
		accumulate[int64](op, acc, x)
	case tensor.Uint8:
		accumulate[uint8](op, acc, x)
	case tensor.Uint16:
		accumulate[uint16](op, acc, x)
	case tensor.Uint32:
		accumulate[uint32](op, acc, x)
	case tensor.Uint64:
		accumulate[uint64](op, acc, x)
	case tensor.Complex64:
		accumulate[complex64](op, acc, x)
	case tensor.Complex128:
		accumulate[complex128](op, acc, x)
	default:
		panic(fmt.Sprintf("elementwise: no arithmetic on %v", acc.DType()))
	}
}

func accumulate[T tensor.Elem](op Op, acc, x *tensor.Tensor) {
	loop := Arithmetic[T](op)
	a, b := tensor.Values[T](acc), tensor.Values[T](x)
	parallel.For(len(a), Grain(0.5), func(lo, hi int) { loop(a[lo:hi], a[lo:hi], b[lo:hi]) })
}
