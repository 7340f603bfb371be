package pbconv

import (
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/tensor"
)

// fields returns a tensor whose elements are in the field for its type.
func (r *reader) fields(dtype tensor.DType, shape tensor.Shape, p *pb.TensorProto) (tensor.Tensor, error) {
	switch dtype {
	case tensor.Float32:
		return fill(r, shape, p.FloatVal, number[float32, float32])
	case tensor.Float64:
		return fill(r, shape, p.DoubleVal, number[float64, float64])
	case tensor.Int64:
		return fill(r, shape, p.Int64Val, number[int64, int64])
	case tensor.Uint64:
		return fill(r, shape, p.Uint64Val, number[uint64, uint64])
	case tensor.Uint32:
		return fill(r, shape, p.Uint32Val, number[uint32, uint32])
	case tensor.Bool:
		return fill(r, shape, p.BoolVal, func(v bool) bool { return v })
	case tensor.String:
		return fill(r, shape, p.StringVal, func(v []byte) string { return string(v) })
	case tensor.Complex64:
		return fill(r, shape, pairs(p.ScomplexVal), func(v [2]float32) complex64 { return complex(v[0], v[1]) })
	case tensor.Complex128:
		return fill(r, shape, pairs(p.DcomplexVal), func(v [2]float64) complex128 { return complex(v[0], v[1]) })
	case tensor.Float16:
		return fill(r, shape, p.HalfVal, number[tensor.Float16Elem, int32])
	case tensor.BFloat16:
		return fill(r, shape, p.HalfVal, number[tensor.BFloat16Elem, int32])
	case tensor.Float8E5M2:
		return fill(r, shape, p.Float8Val, number[tensor.Float8E5M2Elem, byte])
	case tensor.Float8E4M3:
		return fill(r, shape, p.Float8Val, number[tensor.Float8E4M3Elem, byte])
	case tensor.Resource:
		return r.handles(shape, p.ResourceHandleVal)
	case tensor.Variant:
		return r.variants(shape, p.VariantVal)
	default:
		return r.narrow(dtype, shape, p.IntVal)
	}
}

// narrow returns a tensor of one of the types that share the field int_val.
func (r *reader) narrow(dtype tensor.DType, shape tensor.Shape, vals []int32) (tensor.Tensor, error) {
	switch dtype {
	case tensor.Int32:
		return fill(r, shape, vals, number[int32, int32])
	case tensor.Int16:
		return fill(r, shape, vals, number[int16, int32])
	case tensor.Int8:
		return fill(r, shape, vals, number[int8, int32])
	case tensor.Uint16:
		return fill(r, shape, vals, number[uint16, int32])
	case tensor.Uint8:
		return fill(r, shape, vals, number[uint8, int32])
	case tensor.QInt32:
		return fill(r, shape, vals, number[tensor.QInt32Elem, int32])
	case tensor.QInt16:
		return fill(r, shape, vals, number[tensor.QInt16Elem, int32])
	case tensor.QInt8:
		return fill(r, shape, vals, number[tensor.QInt8Elem, int32])
	case tensor.QUint16:
		return fill(r, shape, vals, number[tensor.QUint16Elem, int32])
	case tensor.QUint8:
		return fill(r, shape, vals, number[tensor.QUint8Elem, int32])
	case tensor.Int4:
		return fill(r, shape, vals, number[tensor.Int4Elem, int32])
	case tensor.Uint4:
		return fill(r, shape, vals, number[tensor.Uint4Elem, int32])
	default:
		_, err := elementType(pb.DataType(dtype))
		return tensor.Tensor{}, err
	}
}

type numeric interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64
}

func number[T, F numeric](v F) T { return T(v) }

// pairs returns the complex numbers in a list of real and imaginary parts. An incomplete number at
// the end is ignored.
func pairs[F any](parts []F) [][2]F {
	out := make([][2]F, len(parts)/2)
	for i := range out {
		out[i] = [2]F{parts[2*i], parts[2*i+1]}
	}
	return out
}

// fill returns a tensor of the given values. The last value is repeated for missing elements, or
// zero if there are no values. Excess values are ignored.
func fill[T tensor.Elem, F any](r *reader, shape tensor.Shape, vals []F, convert func(F) T) (tensor.Tensor, error) {
	dtype, n := tensor.DTypeOf[T](), shape.NumElements()
	vals = vals[:min(int64(len(vals)), n)]
	size := dtype.Size()
	if size == 0 {
		size = wordSize
	}
	if err := r.expand(n-int64(len(vals)), size); err != nil {
		return tensor.Tensor{}, err
	}
	t, err := tensor.Zeros(dtype, shape)
	if err != nil {
		return tensor.Tensor{}, err
	}
	out := tensor.Values[T](&t)
	for i, v := range vals {
		out[i] = convert(v)
	}
	if len(vals) > 0 {
		rest, last := out[len(vals):], out[len(vals)-1]
		for i := range rest {
			rest[i] = last
		}
	}
	return t, nil
}

// wordSize is the minimum size of an element that is a Go value, in bytes.
const wordSize = 16
