package predict

import (
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/proto/pbconv"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// minWide is the size in bytes to which elements of narrow types grow in a message.
const minWide = 4

// tensorProto returns the message of a tensor, with the elements in the field of their type.
func (a *API) tensorProto(t *tensor.Tensor) (*pb.TensorProto, error) {
	if n := int64(t.NumElements()); !membudget.Take(n * int64(max(t.DType().Size(), minWide))) {
		return nil, status.ResourceExhaustedf("there is no memory for an answer with a tensor of %d elements (--memory-limit)", n)
	}
	if a.Content {
		return pbconv.TensorCopyToProto(t)
	}
	p, err := pbconv.TensorToProto(t)
	if err != nil {
		return nil, err
	}
	switch t.DType() {
	case tensor.Float32:
		p.FloatVal = append(p.FloatVal, tensor.Values[float32](t)...)
	case tensor.Float64:
		p.DoubleVal = append(p.DoubleVal, tensor.Values[float64](t)...)
	case tensor.Int64:
		p.Int64Val = append(p.Int64Val, tensor.Values[int64](t)...)
	case tensor.Uint32:
		p.Uint32Val = append(p.Uint32Val, tensor.Values[uint32](t)...)
	case tensor.Uint64:
		p.Uint64Val = append(p.Uint64Val, tensor.Values[uint64](t)...)
	case tensor.Bool:
		p.BoolVal = append(p.BoolVal, tensor.Values[bool](t)...)
	case tensor.Int32:
		p.IntVal = append(p.IntVal, tensor.Values[int32](t)...)
	case tensor.Int16:
		p.IntVal = widen(tensor.Values[int16](t))
	case tensor.Int8:
		p.IntVal = widen(tensor.Values[int8](t))
	case tensor.Uint8:
		p.IntVal = widen(tensor.Values[uint8](t))
	case tensor.Uint16:
		p.IntVal = widen(tensor.Values[uint16](t))
	case tensor.Float16:
		p.HalfVal = widen(tensor.Values[tensor.Float16Elem](t))
	case tensor.BFloat16:
		p.HalfVal = widen(tensor.Values[tensor.BFloat16Elem](t))
	case tensor.Complex64:
		for _, v := range tensor.Values[complex64](t) {
			p.ScomplexVal = append(p.ScomplexVal, real(v), imag(v))
		}
	case tensor.Complex128:
		for _, v := range tensor.Values[complex128](t) {
			p.DcomplexVal = append(p.DcomplexVal, real(v), imag(v))
		}
	default:
		p.TensorContent = append([]byte(nil), p.TensorContent...)
		return p, nil
	}
	p.TensorContent = nil
	return p, nil
}

func widen[T ~int16 | ~int8 | ~uint8 | ~uint16](vals []T) []int32 {
	out := make([]int32, len(vals))
	for i, v := range vals {
		out[i] = int32(v)
	}
	return out
}
