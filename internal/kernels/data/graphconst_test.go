package data

import (
	"math"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/tensor"
)

// TestFoldedConstants compares with constants of functions that TensorFlow 2.21 has optimized.
func TestFoldedConstants(t *testing.T) {
	for _, c := range []struct {
		in   tensor.Tensor
		want *pb.TensorProto // expected encoding; nil for unchanged constants
	}{
		{tensor.Scalar[int32](0), &pb.TensorProto{}},
		{tensor.Scalar[int32](1), &pb.TensorProto{IntVal: []int32{1}}},
		{tensor.Vector[int32](0, 0), &pb.TensorProto{}},
		{tensor.Vector[int32](5, 5, 5), &pb.TensorProto{IntVal: []int32{5}}},
		{tensor.Vector[int32](1, 2, 2), nil},
		{tensor.Vector[int64](), nil},
		{tensor.Vector[int64](1, 1), &pb.TensorProto{Int64Val: []int64{1}}},
		{tensor.Scalar[float32](0), &pb.TensorProto{}},
		{tensor.Scalar(float32(math.Copysign(0, -1))), &pb.TensorProto{FloatVal: []float32{float32(math.Copysign(0, -1))}}},
		{tensor.Scalar(float32(1.5)), &pb.TensorProto{FloatVal: []float32{1.5}}},
		{tensor.Vector(false, false), &pb.TensorProto{}},
		{tensor.Vector(true, true), &pb.TensorProto{BoolVal: []bool{true}}},
		{tensor.Scalar(""), &pb.TensorProto{StringVal: [][]byte{{}}}},
		{tensor.Vector("a", "a"), &pb.TensorProto{StringVal: [][]byte{[]byte("a")}}},
		{tensor.Vector("a", "b"), nil},
		{tensor.Scalar[int8](3), &pb.TensorProto{IntVal: []int32{3}}},
		{tensor.Vector[uint8](7, 7), &pb.TensorProto{IntVal: []int32{7}}},
		{tensor.Scalar(tensor.Float16Of(1.5)), &pb.TensorProto{HalfVal: []int32{15872}}},
		{tensor.Scalar[complex64](0), &pb.TensorProto{ScomplexVal: []float32{0, 0}}},
		{tensor.Scalar[complex64](1 + 2i), &pb.TensorProto{ScomplexVal: []float32{1, 2}}},
	} {
		got, ok := foldedConstant(&c.in)
		if ok != (c.want != nil) {
			t.Errorf("%v: %v, %t", c.in, got, ok)
		}
		if !ok {
			continue
		}
		c.want.Dtype, c.want.TensorShape = got.GetDtype(), got.GetTensorShape()
		if !proto.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.in, got, c.want)
		}
	}
}
