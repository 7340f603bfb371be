package data

import (
	"bytes"
	"slices"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/proto/pbconv"
	"github.com/weft-ml/weft/tensor"
)

// constant returns the attributes of a constant, encoded exactly as in TensorFlow because graph
// fingerprints depend on the bytes: a single element is in the field of its type, several are in
// the tensor content.
func constant(t *tensor.Tensor) (map[string]*pb.AttrValue, error) {
	p, err := constantValue(t)
	if err != nil {
		return nil, err
	}
	return map[string]*pb.AttrValue{
		"dtype": {Value: &pb.AttrValue_Type{Type: pb.DataType(t.DType())}}, "value": {Value: &pb.AttrValue_Tensor{Tensor: p}},
	}, nil
}

func constantValue(t *tensor.Tensor) (*pb.TensorProto, error) {
	if t.NumElements() > 1 && t.DType() == tensor.String {
		b, err := pbconv.EncodeElements(t)
		return &pb.TensorProto{Dtype: pb.DataType_DT_STRING, TensorShape: pbconv.ShapeToProto(t.Shape()), TensorContent: b}, err
	}
	p, err := pbconv.TensorToProto(t)
	if err != nil || t.NumElements() != 1 || len(p.GetTensorContent()) == 0 {
		return p, err
	}
	if setFirst(p, t) {
		p.TensorContent = nil
	}
	return p, nil
}

// setFirst stores the first element of a tensor in the field of its type. It returns false for
// types that it does not support.
func setFirst(p *pb.TensorProto, t *tensor.Tensor) bool {
	switch t.DType() {
	case tensor.Int64:
		p.Int64Val = tensor.Values[int64](t)[:1]
	case tensor.Int32:
		p.IntVal = tensor.Values[int32](t)[:1]
	case tensor.Bool:
		p.BoolVal = tensor.Values[bool](t)[:1]
	case tensor.Float32:
		p.FloatVal = tensor.Values[float32](t)[:1]
	case tensor.Float64:
		p.DoubleVal = tensor.Values[float64](t)[:1]
	default:
		return false
	}
	return true
}

// foldedConstant returns the encoding of a function's constant after TensorFlow's graph
// optimization. If all elements are equal, it holds a single value, or none if the value is zero.
// It returns false for other constants, which keep their encoding.
func foldedConstant(t *tensor.Tensor) (*pb.TensorProto, bool) {
	n := t.NumElements()
	if n == 0 {
		return nil, false
	}
	p := &pb.TensorProto{Dtype: pb.DataType(t.DType()), TensorShape: pbconv.ShapeToProto(t.Shape())}
	if t.DType() == tensor.String {
		all := tensor.Values[string](t)
		p.StringVal = [][]byte{[]byte(all[0])}
		return p, !slices.ContainsFunc(all, func(s string) bool { return s != all[0] })
	}
	if !hasRawBytes(t.DType()) {
		return nil, false
	}
	b := t.Bytes()
	size := len(b) / n
	for i := size; i < len(b); i += size {
		if !bytes.Equal(b[:size], b[i:i+size]) {
			return nil, false
		}
	}
	zero := bytes.Count(b[:size], []byte{0}) == size
	switch t.DType() {
	case tensor.Complex64:
		v := tensor.Values[complex64](t)[0]
		p.ScomplexVal = []float32{real(v), imag(v)}
		return p, true
	case tensor.Complex128:
		v := tensor.Values[complex128](t)[0]
		p.DcomplexVal = []float64{real(v), imag(v)}
		return p, true
	}
	if zero || setFirst(p, t) {
		return p, true
	}
	switch t.DType() {
	case tensor.Uint64:
		p.Uint64Val = tensor.Values[uint64](t)[:1]
	case tensor.Uint32:
		p.Uint32Val = tensor.Values[uint32](t)[:1]
	case tensor.Int16:
		p.IntVal = []int32{int32(tensor.Values[int16](t)[0])}
	case tensor.Int8:
		p.IntVal = []int32{int32(tensor.Values[int8](t)[0])}
	case tensor.Uint16:
		p.IntVal = []int32{int32(tensor.Values[uint16](t)[0])}
	case tensor.Uint8:
		p.IntVal = []int32{int32(tensor.Values[uint8](t)[0])}
	case tensor.Float16, tensor.BFloat16:
		p.HalfVal = []int32{int32(b[0]) | int32(b[1])<<8}
	default:
		return nil, false
	}
	return p, true
}
