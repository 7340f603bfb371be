package data

import (
	"github.com/weft-ml/weft/internal/pb"
	"github.com/weft-ml/weft/internal/pbconv"
	"github.com/weft-ml/weft/tensor"
)

// constant returns the attributes of a constant with the bytes that TensorFlow has for it, which the fingerprints of graphs
// depend on: a single element in the field of its type, several in the field for all types.
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
	content := p.TensorContent
	p.TensorContent = nil
	switch t.DType() {
	case tensor.Int64:
		p.Int64Val = tensor.Values[int64](t)
	case tensor.Int32:
		p.IntVal = tensor.Values[int32](t)
	case tensor.Bool:
		p.BoolVal = tensor.Values[bool](t)
	case tensor.Float32:
		p.FloatVal = tensor.Values[float32](t)
	case tensor.Float64:
		p.DoubleVal = tensor.Values[float64](t)
	default:
		p.TensorContent = content
	}
	return p, nil
}
