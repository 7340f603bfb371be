package elementwise

import (
	"fmt"

	"github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/tensor"
)

// Accumulate sets acc to acc op x, element by element. Both tensors have one type with arithmetic
// and the same number of elements. If they are in the memory of a device, the work is queued there.
func Accumulate(op Op, acc, x *tensor.Tensor) {
	if d := device.Of(acc); d != nil {
		accumulateOnDevice(d, op, acc, x)
		return
	}
	AccumulateRows(op, acc, x, []int64{0}, acc.NumElements())
}

// AccumulateRows sets row rows[i] of acc, of width elements, to itself op row i of x. If x is a
// scalar, its only element is used for all rows. Negative row numbers are skipped, and rows that
// are listed several times are combined in list order. Strings support Add, which concatenates.
func AccumulateRows(op Op, acc, x *tensor.Tensor, rows []int64, width int) {
	if len(rows) == 0 || width == 0 {
		return
	}
	switch acc.DType() {
	case tensor.Float32:
		accumulate(Arithmetic[float32](op), acc, x, rows, width)
	case tensor.Float64:
		accumulate(Arithmetic[float64](op), acc, x, rows, width)
	case tensor.Float16:
		accumulate(Arithmetic[tensor.Float16Elem](op), acc, x, rows, width)
	case tensor.BFloat16:
		accumulate(Arithmetic[tensor.BFloat16Elem](op), acc, x, rows, width)
	case tensor.Int8:
		accumulate(Arithmetic[int8](op), acc, x, rows, width)
	case tensor.Int16:
		accumulate(Arithmetic[int16](op), acc, x, rows, width)
	case tensor.Int32:
		accumulate(Arithmetic[int32](op), acc, x, rows, width)
	case tensor.Int64:
		accumulate(Arithmetic[int64](op), acc, x, rows, width)
	case tensor.Uint8:
		accumulate(Arithmetic[uint8](op), acc, x, rows, width)
	case tensor.Uint16:
		accumulate(Arithmetic[uint16](op), acc, x, rows, width)
	case tensor.Uint32:
		accumulate(Arithmetic[uint32](op), acc, x, rows, width)
	case tensor.Uint64:
		accumulate(Arithmetic[uint64](op), acc, x, rows, width)
	case tensor.Complex64:
		accumulate(Arithmetic[complex64](op), acc, x, rows, width)
	case tensor.Complex128:
		accumulate(Arithmetic[complex128](op), acc, x, rows, width)
	case tensor.Bool:
		accumulate(Arithmetic[bool](op), acc, x, rows, width)
	case tensor.String:
		if op == Add {
			accumulate(concatenate, acc, x, rows, width)
			return
		}
		fallthrough
	default:
		panic(fmt.Sprintf("elementwise: no arithmetic on %v", acc.DType()))
	}
}

func concatenate(z, x, y []string) {
	for i := range z {
		z[i] = x[i] + y[i]
	}
}

func accumulate[T tensor.Elem](loop func(z, x, y []T), acc, x *tensor.Tensor, rows []int64, width int) {
	a, u, step := tensor.Values[T](acc), tensor.Values[T](x), width
	if len(u) == 1 && len(rows)*width != 1 {
		row := membudget.Make[T](width)
		for k := range row {
			row[k] = u[0]
		}
		u, step = row, 0
	}
	accumulateRows(loop, a, u, rows, width, step)
}

// blockColumns is the number of columns that one core processes. Work is split by columns, not by
// rows, so that rows that are listed twice keep their order.
const blockColumns = 4096

// accumulateRows combines each listed row with its update. Consecutive updates are step elements
// apart.
func accumulateRows[T any](loop func(z, x, y []T), acc, x []T, rows []int64, width, step int) {
	grain := blockColumns
	if len(rows) == 1 {
		grain = Grain(0.5)
	}
	parallel.For(width, grain, func(lo, hi int) {
		for i, row := range rows {
			if row < 0 {
				continue
			}
			out := acc[int(row)*width+lo : int(row)*width+hi]
			loop(out, out, x[i*step+lo:i*step+hi])
		}
	})
}
