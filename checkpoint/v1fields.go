package checkpoint

import (
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/tensor"
)

// typedFieldLen returns the number of elements of the given type in the message, which has a field
// for each type that the format V1 can store. It returns -1 for other types.
func typedFieldLen(dtype tensor.DType, p *pb.TensorProto) int {
	switch dtype {
	case tensor.Float32:
		return len(p.GetFloatVal())
	case tensor.Float64:
		return len(p.GetDoubleVal())
	case tensor.Int32, tensor.Int16, tensor.Int8, tensor.Uint16, tensor.Uint8, tensor.QInt8, tensor.QUint8, tensor.QInt32:
		return len(p.GetIntVal())
	case tensor.Int64:
		return len(p.GetInt64Val())
	case tensor.Float16:
		return len(p.GetHalfVal())
	case tensor.Bool:
		return len(p.GetBoolVal())
	case tensor.Complex64:
		return len(p.GetScomplexVal()) / 2
	case tensor.Complex128:
		return len(p.GetDcomplexVal()) / 2
	case tensor.String:
		return len(p.GetStringVal())
	default:
		return -1
	}
}

// maxFieldBytes returns TensorFlow's upper bound for the size in bytes of a tensor's elements in a
// message.
func maxFieldBytes(t *tensor.Tensor) int64 {
	each := int64(10) // bytes of a signed number as a varint
	switch t.DType() {
	case tensor.String:
		return t.ByteSize() + each*int64(t.NumElements())
	case tensor.Float32, tensor.Float64, tensor.Complex64, tensor.Complex128, tensor.Bool:
		each = int64(t.DType().Size())
	case tensor.Uint8, tensor.QUint8:
		each = 2
	case tensor.Uint16, tensor.Float16:
		each = 3
	default:
	}
	return each * int64(t.NumElements())
}

// typedFields returns a message that holds only the elements of a tensor, in the field of their
// type. It returns nil for types that the format V1 cannot store.
func typedFields(t *tensor.Tensor) *pb.TensorProto {
	switch t.DType() {
	case tensor.Float32:
		return &pb.TensorProto{FloatVal: tensor.Values[float32](t)}
	case tensor.Float64:
		return &pb.TensorProto{DoubleVal: tensor.Values[float64](t)}
	case tensor.Int64:
		return &pb.TensorProto{Int64Val: tensor.Values[int64](t)}
	case tensor.Bool:
		return &pb.TensorProto{BoolVal: tensor.Values[bool](t)}
	case tensor.Float16:
		return &pb.TensorProto{HalfVal: widen[tensor.Float16Elem](t)}
	case tensor.Complex64:
		p := &pb.TensorProto{}
		for _, v := range tensor.Values[complex64](t) {
			p.ScomplexVal = append(p.ScomplexVal, real(v), imag(v))
		}
		return p
	case tensor.Complex128:
		p := &pb.TensorProto{}
		for _, v := range tensor.Values[complex128](t) {
			p.DcomplexVal = append(p.DcomplexVal, real(v), imag(v))
		}
		return p
	case tensor.String:
		p := &pb.TensorProto{}
		for _, v := range tensor.Values[string](t) {
			p.StringVal = append(p.StringVal, []byte(v))
		}
		return p
	default:
		if vals := ints(t); vals != nil {
			return &pb.TensorProto{IntVal: vals}
		}
		return nil
	}
}

// ints returns the elements of the types that share the field int_val.
func ints(t *tensor.Tensor) []int32 {
	switch t.DType() {
	case tensor.Int32:
		return tensor.Values[int32](t)
	case tensor.Int16:
		return widen[int16](t)
	case tensor.Int8:
		return widen[int8](t)
	case tensor.Uint16:
		return widen[uint16](t)
	case tensor.Uint8:
		return widen[uint8](t)
	case tensor.QInt8:
		return widen[tensor.QInt8Elem](t)
	case tensor.QUint8:
		return widen[tensor.QUint8Elem](t)
	case tensor.QInt32:
		return widen[tensor.QInt32Elem](t)
	default:
		return nil
	}
}

func widen[T interface {
	tensor.Elem
	~int8 | ~int16 | ~int32 | ~uint8 | ~uint16
}](t *tensor.Tensor) []int32 {
	vals := tensor.Values[T](t)
	out := make([]int32, len(vals))
	for i, v := range vals {
		out[i] = int32(v)
	}
	return out
}
