package rpc

import (
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Bytes as TensorFlow 2.21 sends them, with 5 as the time of sending.
func TestRecvTensorBytes(t *testing.T) {
	empty, err := tensor.FromSlice(tensor.Shape{0}, []float32{})
	if err != nil {
		t.Fatal(err)
	}
	row, err := tensor.FromSlice(tensor.Shape{1, 2}, []float32{1, 2})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		resp message.RecvTensorResponse
		want string
	}{
		{"matrix", message.RecvTensorResponse{Tensor: row}, "18 05 0a 16 08 01 12 08 12 02 08 01 12 02 08 02 22 08 0000803f 00000040"},
		{"vector", message.RecvTensorResponse{Tensor: tensor.Vector[float32](1, 2)}, "18 05 0a 12 08 01 12 04 12 02 08 02 22 08 0000803f 00000040"},
		{"scalar", message.RecvTensorResponse{Tensor: tensor.Scalar[float32](2)}, "18 05 0a 08 08 01 22 04 00000040"},
		{"dead", message.RecvTensorResponse{Tensor: empty, Dead: true}, "10 01 18 05 0a 0a 08 01 12 04 12 02 08 00 22 00"},
		{"dead without a tensor", message.RecvTensorResponse{Dead: true}, "10 01 18 05 0a 0a 08 01 12 04 12 02 08 00 22 00"},
		{"acknowledged", message.RecvTensorResponse{Tensor: tensor.Scalar(true), RequireAck: true}, "18 05 28 01 0a 05 08 0a 22 01 01"},
		{"strings", message.RecvTensorResponse{Tensor: tensor.Vector("ab", "")}, "0a 0e 08 07 12 04 12 02 08 02 22 04 02 00 61 62 18 05"},
		{"one string", message.RecvTensorResponse{Tensor: tensor.Scalar("a")}, "0a 08 08 07 12 00 22 02 01 61 18 05"},
	} {
		tt.resp.SendStartMicros = 5
		data, err := encode(&tt.resp)
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		if got, want := hex.EncodeToString(slices.Concat(data.data...)), strings.ReplaceAll(tt.want, " ", ""); got != want {
			t.Errorf("%s: got  %s\nwant %s", tt.name, got, want)
		}
	}
}

// Large elements are not copied, and their tensor is held until the message has been sent.
func TestLargeTensorIsShared(t *testing.T) {
	src, err := tensor.Zeros(tensor.Uint8, tensor.Shape{inlineContent + 1})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Release()
	data, err := encode(&message.RecvTensorResponse{Tensor: src})
	if err != nil {
		t.Fatal(err)
	}
	if len(data.data) != 2 || &data.data[1][0] != &src.Bytes()[0] {
		t.Errorf("the elements are not the second buffer of %d", len(data.data))
	}
	if src.Exclusive() {
		t.Error("the elements may be written to while they are being sent")
	}
	data.Free()
	if !src.Exclusive() {
		t.Error("the elements stay in use after they were sent")
	}
}

// tensorField returns a RecvTensorResponse of the given bytes of its tensor.
func tensorField(content []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), content)
}

func TestTensorEncodings(t *testing.T) {
	shape := func(dims ...int64) *pb.TensorShapeProto {
		s := &pb.TensorShapeProto{}
		for _, d := range dims {
			s.Dim = append(s.Dim, &pb.TensorShapeProto_Dim{Size: d, Name: "ignored"})
		}
		return s
	}
	for _, tt := range []struct {
		name string
		in   *pb.TensorProto
		want any
	}{
		{"field", &pb.TensorProto{Dtype: pb.DataType_DT_FLOAT, TensorShape: shape(2), FloatVal: []float32{3, 4}}, []float32{3, 4}},
		{"last value repeats", &pb.TensorProto{Dtype: pb.DataType_DT_INT32, TensorShape: shape(3), IntVal: []int32{3, 4}}, []int32{3, 4, 4}},
		{"no values", &pb.TensorProto{Dtype: pb.DataType_DT_INT64, TensorShape: shape(2)}, []int64{0, 0}},
		{"half", &pb.TensorProto{Dtype: pb.DataType_DT_HALF, TensorShape: shape(1), HalfVal: []int32{0x3800}}, tensor.Vector[tensor.Float16Elem](0x3800)},
		{"strings", &pb.TensorProto{Dtype: pb.DataType_DT_STRING, TensorShape: shape(2), StringVal: [][]byte{[]byte("x")}}, []string{"x", "x"}},
		{"no shape", &pb.TensorProto{Dtype: pb.DataType_DT_BOOL, BoolVal: []bool{true}}, true},
		{"odd bool", &pb.TensorProto{Dtype: pb.DataType_DT_BOOL, TensorShape: shape(2), TensorContent: []byte{2, 0}}, []bool{true, false}},
		{"version", &pb.TensorProto{Dtype: pb.DataType_DT_UINT8, VersionNumber: 1, TensorContent: []byte{7}}, uint8(7)},
	} {
		wire, err := proto.Marshal(tt.in)
		if err != nil {
			t.Fatal(err)
		}
		var got message.RecvTensorResponse
		if err := decode(sliced(tensorField(wire), 3), &got); err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if want, err := tensor.New(tt.want); err != nil || want.String() != got.Tensor.String() {
			t.Errorf("%s: got %v, want %v", tt.name, got.Tensor.String(), want.String())
		}
	}
}

// Fields may be in any order and repeated.
func TestTensorFieldOrder(t *testing.T) {
	for _, in := range []string{
		"22 04 05000000 08 03",
		"22 04 05000000 12 00 08 03",
		"08 01 22 04 05000000 08 03",             // the last type counts
		"08 03 22 01 ff 22 04 05000000",          // the last content counts
		"08 03 12 04 12 02 08 01 22 04 05000000", // with a shape
		"ba 3e 01 78 08 03 22 04 05000000",       // with an unknown field before
	} {
		wire, err := hex.DecodeString(strings.ReplaceAll(in, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		var got message.RecvTensorResponse
		if err := decode(sliced(tensorField(wire), 2), &got); err != nil {
			t.Errorf("%s: %v", in, err)
		} else if got.Tensor.DType() != tensor.Int32 || got.Tensor.NumElements() != 1 || tensor.Value[int32](&got.Tensor) != 5 {
			t.Errorf("%s: got %v", in, got.Tensor.String())
		}
	}
}

func TestBadTensors(t *testing.T) {
	content := func(dtype pb.DataType, n int, dims ...int64) *pb.TensorProto {
		p := &pb.TensorProto{Dtype: dtype, TensorShape: &pb.TensorShapeProto{}, TensorContent: make([]byte, n)}
		for _, d := range dims {
			p.TensorShape.Dim = append(p.TensorShape.Dim, &pb.TensorShapeProto_Dim{Size: d})
		}
		return p
	}
	float := pb.DataType_DT_FLOAT
	for name, in := range map[string]*pb.TensorProto{
		"no type":             content(0, 4),
		"type out of range":   content(99, 4),
		"type far off":        content(1<<30, 4),
		"reference":           content(pb.DataType_DT_FLOAT_REF, 4),
		"too short":           content(float, 4, 2),
		"too long":            content(float, 9, 2),
		"not whole elements":  content(float, 7, 2),
		"negative dimension":  content(float, 4, -5),
		"two negative":        content(float, 20, -5, -1),
		"overflow":            content(float, 4, 1<<40, 1<<40),
		"overflow to zero":    content(float, 0, 1<<32, 1<<32),
		"overflow to match":   content(float, 4, 1<<62, 4, 1),
		"many dimensions":     content(float, 4, make([]int64, 300)...),
		"strings too many":    content(pb.DataType_DT_STRING, 3, 1<<32),
		"string length":       {Dtype: pb.DataType_DT_STRING, TensorContent: []byte{9, 'x'}},
		"huge splat":          {Dtype: float, TensorShape: content(0, 0, 1<<40).TensorShape, FloatVal: []float32{1}},
		"huge zeros":          content(float, 0, 1<<40),
		"garbage in a handle": {Dtype: pb.DataType_DT_RESOURCE, TensorContent: []byte{1, 0xff}},
	} {
		wire, err := proto.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		var got message.RunCallableRequest
		if err := decode(sliced(protowire.AppendBytes([]byte{3<<3 | 2}, wire), 1<<20), &got); err == nil {
			t.Errorf("%s: no error", name)
		} else if code := status.CodeOf(err); code != status.InvalidArgument || !strings.HasPrefix(err.Error(), "Invalid TensorProto for feed value 0") {
			t.Errorf("%s: got %v error %v", name, code, err)
		}
	}
}

// The limit for repeated elements applies to all tensors of a message together.
func TestExpansionIsBounded(t *testing.T) {
	one := &pb.TensorProto{
		Dtype: pb.DataType_DT_BOOL, TensorShape: &pb.TensorShapeProto{Dim: []*pb.TensorShapeProto_Dim{{Size: 1 << 26}}},
	}
	req := &pb.RunCallableRequest{}
	for range 1000 {
		req.Feed = append(req.Feed, one)
	}
	wire, err := proto.Marshal(req)
	if err != nil {
		t.Fatal(err)
	}
	if err := decode(sliced(wire, len(wire)), &message.RunCallableRequest{}); err == nil {
		t.Error("no error")
	}
}

func TestMissingTensor(t *testing.T) {
	if err := decode(nil, &message.RecvTensorResponse{}); err == nil {
		t.Error("no error for a response without a tensor")
	}
	feed := protowire.AppendBytes([]byte{2<<3 | 2}, []byte{1<<3 | 2, 1, 'x'})
	if err := decode(sliced(feed, 99), &message.RunStepRequest{}); err == nil {
		t.Error("no error for a feed without a value")
	}
}
