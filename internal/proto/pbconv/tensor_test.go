package pbconv

import (
	"bytes"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func dims(sizes ...int64) *pb.TensorShapeProto { return ShapeToProto(sizes) }

// TestTensorFields reads every typed field, with fewer values than elements, as many, and more.
func TestTensorFields(t *testing.T) {
	tests := []struct {
		name string
		msg  *pb.TensorProto
		want any
	}{
		{"float", &pb.TensorProto{Dtype: pb.DataType_DT_FLOAT, FloatVal: []float32{1, 2}}, []float32{1, 2, 2}},
		{"double", &pb.TensorProto{Dtype: pb.DataType_DT_DOUBLE, DoubleVal: []float64{1, 2, 3, 4}}, []float64{1, 2, 3}},
		{"int64", &pb.TensorProto{Dtype: pb.DataType_DT_INT64, Int64Val: []int64{-1 << 40}}, []int64{-1 << 40, -1 << 40, -1 << 40}},
		{"int32", &pb.TensorProto{Dtype: pb.DataType_DT_INT32, IntVal: []int32{1, 2, 3}}, []int32{1, 2, 3}},
		{"int16", &pb.TensorProto{Dtype: pb.DataType_DT_INT16, IntVal: []int32{1, -2, 3}}, []int16{1, -2, 3}},
		{"int8", &pb.TensorProto{Dtype: pb.DataType_DT_INT8, IntVal: []int32{1, -128, 3}}, []int8{1, -128, 3}},
		{"uint16", &pb.TensorProto{Dtype: pb.DataType_DT_UINT16, IntVal: []int32{1, 65535}}, []uint16{1, 65535, 65535}},
		{"uint8", &pb.TensorProto{Dtype: pb.DataType_DT_UINT8, IntVal: []int32{1, 255}}, []uint8{1, 255, 255}},
		{"uint32", &pb.TensorProto{Dtype: pb.DataType_DT_UINT32, Uint32Val: []uint32{1 << 31}}, []uint32{1 << 31, 1 << 31, 1 << 31}},
		{"uint64", &pb.TensorProto{Dtype: pb.DataType_DT_UINT64, Uint64Val: []uint64{1 << 63}}, []uint64{1 << 63, 1 << 63, 1 << 63}},
		{"bool", &pb.TensorProto{Dtype: pb.DataType_DT_BOOL, BoolVal: []bool{true, false}}, []bool{true, false, false}},
		{"string", &pb.TensorProto{Dtype: pb.DataType_DT_STRING, StringVal: [][]byte{[]byte("a"), nil, {0xff}}}, []string{"a", "", "\xff"}},
		{"complex64", &pb.TensorProto{Dtype: pb.DataType_DT_COMPLEX64, ScomplexVal: []float32{1, 2, 3, 4}}, []complex64{1 + 2i, 3 + 4i, 3 + 4i}},
		{"complex128", &pb.TensorProto{Dtype: pb.DataType_DT_COMPLEX128, DcomplexVal: []float64{1, 2, 3}}, []complex128{1 + 2i, 1 + 2i, 1 + 2i}},
		{"half", &pb.TensorProto{Dtype: pb.DataType_DT_HALF, HalfVal: []int32{0x3c00, 0xc000}}, []tensor.Float16Elem{0x3c00, 0xc000, 0xc000}},
		{"bfloat16", &pb.TensorProto{Dtype: pb.DataType_DT_BFLOAT16, HalfVal: []int32{0x3f80}}, []tensor.BFloat16Elem{0x3f80, 0x3f80, 0x3f80}},
		{"none given", &pb.TensorProto{Dtype: pb.DataType_DT_FLOAT}, []float32{0, 0, 0}},
		{"no strings given", &pb.TensorProto{Dtype: pb.DataType_DT_STRING}, []string{"", "", ""}},
		{"field of another type", &pb.TensorProto{Dtype: pb.DataType_DT_FLOAT, DoubleVal: []float64{1}}, []float32{0, 0, 0}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			test.msg.TensorShape = dims(3)
			got, err := TensorFromProto(test.msg)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got.Go(), test.want) {
				t.Errorf("got %v, want %v", got.Go(), test.want)
			}
		})
	}
}

// TestNarrowFields reads the types that Tensor.Go does not return as a slice of their own type.
func TestNarrowFields(t *testing.T) {
	for _, dtype := range []tensor.DType{
		tensor.QInt8, tensor.QUint8, tensor.QInt16, tensor.QUint16, tensor.QInt32, tensor.Int4, tensor.Uint4,
		tensor.Float8E5M2, tensor.Float8E4M3,
	} {
		p := &pb.TensorProto{Dtype: pb.DataType(dtype), TensorShape: dims(2), IntVal: []int32{3, 5}, Float8Val: []byte{3, 5}}
		got, err := TensorFromProto(p)
		if err != nil {
			t.Fatalf("%v: %v", dtype, err)
		}
		want := make([]byte, 2*dtype.Size())
		want[0], want[dtype.Size()] = 3, 5
		if got.DType() != dtype || !bytes.Equal(got.Bytes(), want) {
			t.Errorf("%v: got %v of %v, want %v", dtype, got.Bytes(), got.DType(), want)
		}
	}
}

func TestTensorErrors(t *testing.T) {
	huge := dims(1<<40, 1<<40)
	tests := []struct {
		name string
		msg  *pb.TensorProto
		want string
	}{
		{"no message", nil, "a tensor cannot be of type DT_INVALID"},
		{"unknown type", &pb.TensorProto{Dtype: 99}, "a tensor cannot be of type 99"},
		{"type beyond a byte", &pb.TensorProto{Dtype: 257}, "a tensor cannot be of type 257"},
		{"negative type", &pb.TensorProto{Dtype: -1}, "a tensor cannot be of type -1"},
		{"reference", &pb.TensorProto{Dtype: pb.DataType_DT_FLOAT_REF}, "a tensor cannot be of type DT_FLOAT_REF"},
		{"negative dimension", &pb.TensorProto{Dtype: 1, TensorShape: dims(2, -5)}, "Shape [2,-5] has dimensions with values below -1"},
		{"unknown dimension", &pb.TensorProto{Dtype: 1, TensorShape: dims(-1)}, "Shape [?] is not fully defined"},
		{"unknown rank", &pb.TensorProto{Dtype: 1, TensorShape: &pb.TensorShapeProto{UnknownRank: true}}, "Shape <unknown> is not fully defined"},
		{"overflow", &pb.TensorProto{Dtype: 1, TensorShape: huge}, "is too large (more than 2**63 - 1 entries)"},
		{"too many dimensions", &pb.TensorProto{Dtype: 1, TensorShape: dims(make([]int64, 255)...)}, "too many dimensions"},
		{"content too short", &pb.TensorProto{Dtype: 1, TensorShape: dims(2), TensorContent: make([]byte, 7)}, "is not 7 bytes"},
		{"content too long", &pb.TensorProto{Dtype: 1, TensorShape: dims(2), TensorContent: make([]byte, 9)}, "is not 9 bytes"},
		{"content for no elements", &pb.TensorProto{Dtype: 1, TensorShape: dims(0), TensorContent: make([]byte, 4)}, "is not 4 bytes"},
		{"repeated without end", &pb.TensorProto{Dtype: 1, TensorShape: dims(1 << 30), FloatVal: []float32{1}}, "exceed the limit of one message"},
		{"zeros without end", &pb.TensorProto{Dtype: 7, TensorShape: dims(1 << 40)}, "exceed the limit of one message"},
		{"handles without end", &pb.TensorProto{Dtype: 20, TensorShape: dims(1 << 40)}, "exceed the limit of one message"},
		{"variants without end", &pb.TensorProto{Dtype: 21, TensorShape: dims(1 << 40)}, "exceed the limit of one message"},
		{"too few lengths", &pb.TensorProto{Dtype: 7, TensorShape: dims(1 << 40), TensorContent: []byte{0, 0}}, "2 bytes are too few"},
		{"no bool", &pb.TensorProto{Dtype: 10, TensorShape: dims(3), TensorContent: []byte{0, 1, 2}}, "a bool is neither 0 nor 1"},
		{"length cut", &pb.TensorProto{Dtype: 7, TensorShape: dims(1), TensorContent: []byte{0x80}}, "the length of element 0 is malformed"},
		{"length too large", &pb.TensorProto{Dtype: 7, TensorShape: dims(1), TensorContent: []byte{0xff, 0xff, 0xff, 0xff, 0xff, 1}}, "the length of element 0 is malformed"},
		{"text cut", &pb.TensorProto{Dtype: 7, TensorShape: dims(2), TensorContent: []byte{1, 2, 'a', 'b'}}, "element 1 is 2 bytes long, but 1 are left"},
		{"text left", &pb.TensorProto{Dtype: 7, TensorShape: dims(1), TensorContent: []byte{1, 'a', 'b'}}, "1 bytes are left"},
		{"handle is no message", &pb.TensorProto{Dtype: 20, TensorShape: dims(1), TensorContent: []byte{1, 0xff}}, "element 0"},
		{"variant is no message", &pb.TensorProto{Dtype: 21, TensorShape: dims(1), TensorContent: []byte{1, 0xff}}, "element 0"},
		{"bad shape behind a handle", &pb.TensorProto{Dtype: 20, ResourceHandleVal: []*pb.ResourceHandleProto{{
			Name: "v", DtypesAndShapes: []*pb.ResourceHandleProto_DtypeAndShape{{Shape: dims(-7)}},
		}}}, "resource handle 'v': Shape [-7]"},
		{"bad tensor in a variant", &pb.TensorProto{Dtype: 21, VariantVal: []*pb.VariantTensorDataProto{{
			TypeName: "L", Tensors: []*pb.TensorProto{{Dtype: 99}},
		}}}, "variant of type 'L': tensor 0"},
		{"nested without end", nestedVariant(200), "nested more than"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := TensorFromProto(test.msg)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got %v, want %q", err, test.want)
			}
			if code := status.CodeOf(err); code != status.InvalidArgument && code != status.ResourceExhausted {
				t.Errorf("code is %v", code)
			}
		})
	}
}

func nestedVariant(depth int) *pb.TensorProto {
	p := &pb.TensorProto{Dtype: pb.DataType_DT_VARIANT}
	for range depth {
		p = &pb.TensorProto{Dtype: pb.DataType_DT_VARIANT, VariantVal: []*pb.VariantTensorDataProto{
			{TypeName: "L", Tensors: []*pb.TensorProto{p}},
		}}
	}
	return p
}

// TestExpansionIsPerMessage checks that the budget of repeated elements is shared by all tensors of
// a message.
func TestExpansionIsPerMessage(t *testing.T) {
	one := &pb.TensorProto{Dtype: pb.DataType_DT_FLOAT, TensorShape: dims(1 << 27)}
	list := make([]*pb.TensorProto, 100)
	for i := range list {
		list[i] = one
	}
	r := &reader{expansion: 1 << 20}
	if _, err := r.list(&pb.AttrValue_ListValue{Tensor: list}); status.CodeOf(err) != status.ResourceExhausted {
		t.Errorf("got %v", err)
	}
}

// TestWireBytes compares with the bytes that TensorFlow's server sends.
func TestWireBytes(t *testing.T) {
	scalar := tensor.Scalar(float32(2))
	matrix, _ := tensor.FromSlice(tensor.Shape{1, 2}, []float32{1, 2})
	words := tensor.Vector("ab", "")
	tests := []struct {
		name string
		t    tensor.Tensor
		want string
	}{
		{"scalar", scalar, "\x08\x01\x12\x00\x22\x04\x00\x00\x00\x40"},
		{"matrix", matrix, "\x08\x01\x12\x08\x12\x02\x08\x01\x12\x02\x08\x02\x22\x08\x00\x00\x80\x3f\x00\x00\x00\x40"},
		{"strings", words, "\x08\x07\x12\x04\x12\x02\x08\x02\x22\x04\x02\x00ab"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p, err := TensorToWire(&test.t)
			if err != nil {
				t.Fatal(err)
			}
			got, err := proto.Marshal(p)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != test.want {
				t.Errorf("got %x, want %x", got, test.want)
			}
		})
	}
}

func samples() []tensor.Tensor {
	inner := tensor.Vector[int32](1, 2)
	return []tensor.Tensor{
		tensor.Scalar(float32(1.5)), tensor.Scalar(math.Pi), tensor.Vector[int8](-1), tensor.Vector[int16](1, 2),
		tensor.Vector[int32](1, 2), tensor.Vector[int64](), tensor.Vector[uint8](1), tensor.Vector[uint16](2),
		tensor.Vector[uint32](3), tensor.Vector[uint64](4), tensor.Vector(true, false), tensor.Vector[complex64](1 + 2i),
		tensor.Vector(1 + 2i), tensor.Vector(tensor.Float16Of(1)), tensor.Vector(tensor.BFloat16Of(1)),
		tensor.Vector[tensor.QInt8Elem](1), tensor.Vector[tensor.Int4Elem](-8), tensor.Vector[tensor.Float8E4M3Elem](7),
		tensor.Vector("", "a", strings.Repeat("long", 100)), tensor.Scalar("x"),
		tensor.Scalar(&tensor.Handle{
			Device: "/job:ps/replica:0/task:0/device:CPU:0", Container: "c", Name: "v", HashCode: 1 << 63, TypeName: "T",
			Elems: []tensor.HandleElem{{DType: tensor.Float32, Shape: tensor.MakePartial(2, -1)}},
		}),
		tensor.Vector(tensor.VariantValue{}, tensor.VariantValue{Value: tensor.EncodedVariant{
			TypeName: "tensorflow::TensorList", Metadata: []byte("m"), Tensors: []tensor.Tensor{inner},
		}}),
	}
}

func TestTensorRoundTrip(t *testing.T) {
	forms := map[string]func(*tensor.Tensor) (*pb.TensorProto, error){"file": TensorToProto, "wire": TensorToWire}
	for form, write := range forms {
		for _, want := range samples() {
			p, err := write(&want)
			if err != nil {
				t.Fatalf("%s, %v: %v", form, want.DType(), err)
			}
			got, err := TensorFromProto(p)
			if err != nil {
				t.Fatalf("%s, %v: %v", form, want.DType(), err)
			}
			if !sameTensor(&got, &want) {
				t.Errorf("%s, %v: %v does not hold the tensor", form, want.DType(), p)
			}
		}
	}
}

// sameTensor compares types, shapes and elements, bit by bit.
func sameTensor(a, b *tensor.Tensor) bool {
	if a.DType() != b.DType() || !a.Shape().Equal(b.Shape()) || !bytes.Equal(a.Bytes(), b.Bytes()) {
		return false
	}
	switch a.DType() {
	case tensor.String:
		return slices.Equal(tensor.Values[string](a), tensor.Values[string](b))
	case tensor.Resource:
		return reflect.DeepEqual(tensor.Values[*tensor.Handle](a), tensor.Values[*tensor.Handle](b))
	case tensor.Variant:
		return slices.EqualFunc(tensor.Values[tensor.VariantValue](a), tensor.Values[tensor.VariantValue](b), sameVariant)
	default:
		return true
	}
}

func sameVariant(a, b tensor.VariantValue) bool {
	x, err1 := a.Encode()
	y, err2 := b.Encode()
	return err1 == nil && err2 == nil && x.TypeName == y.TypeName && bytes.Equal(x.Metadata, y.Metadata) &&
		slices.EqualFunc(x.Tensors, y.Tensors, func(a, b tensor.Tensor) bool { return sameTensor(&a, &b) })
}

func TestUninitializedTensorIsNotWritten(t *testing.T) {
	var none tensor.Tensor
	if _, err := TensorToProto(&none); status.CodeOf(err) != status.FailedPrecondition {
		t.Errorf("got %v", err)
	}
	opaque := tensor.Scalar(tensor.VariantValue{Value: 1})
	if _, err := TensorToWire(&opaque); status.CodeOf(err) != status.Unimplemented {
		t.Errorf("got %v", err)
	}
}

// FuzzTensor checks that no message causes a panic, and that a converted tensor is the same after a
// round trip.
func FuzzTensor(f *testing.F) {
	for _, t := range samples() {
		for _, write := range []func(*tensor.Tensor) (*pb.TensorProto, error){TensorToProto, TensorToWire} {
			p, err := write(&t)
			if err != nil {
				f.Fatal(err)
			}
			b, err := proto.Marshal(p)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var p pb.TensorProto
		if proto.Unmarshal(b, &p) != nil {
			return
		}
		r := &reader{expansion: 1 << 20}
		got, err := r.tensor(&p)
		if err != nil {
			return
		}
		q, err := TensorToWire(&got)
		if err != nil {
			t.Fatal(err)
		}
		again, err := TensorFromProto(q)
		if err != nil {
			t.Fatal(err)
		}
		if !sameTensor(&got, &again) {
			t.Errorf("the round trip of %v returned %v", &p, q)
		}
	})
}

// Variants that no decoder could read are not encoded: each level takes a part of the stack.
func TestNestedVariants(t *testing.T) {
	v := tensor.Scalar(int32(1))
	for depth := range maxNestedDepth + 1 {
		if depth == maxNestedDepth {
			if _, err := TensorToProto(&v); err != nil {
				t.Error(err)
			}
		}
		v = tensor.Scalar(tensor.VariantValue{Value: tensor.EncodedVariant{TypeName: "L", Tensors: []tensor.Tensor{v}}})
	}
	if _, err := TensorToProto(&v); status.CodeOf(err) != status.ResourceExhausted {
		t.Errorf("got %v", status.CodeOf(err))
	}
}
