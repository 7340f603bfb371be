package ragged

import (
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// compositeMetadata returns a CompositeTensorVariantMetadata for a kind of tensor.
func compositeMetadata(t *testing.T, class pb.TypeSpecProto_TypeSpecClass) string {
	t.Helper()
	spec, err := proto.Marshal(&pb.TypeSpecProto{TypeSpecClass: class})
	if err != nil {
		t.Fatal(err)
	}
	return string(protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), spec))
}

func TestComposite(t *testing.T) {
	parts := []tensor.Tensor{tensor.Vector[int64](0, 2, 3), tensor.Vector("a", "b", "c")}
	attrs := func(class pb.TypeSpecProto_TypeSpecClass, types ...tensor.DType) opdef.Attrs {
		return opdef.Attrs{"metadata": compositeMetadata(t, class), "Tcomponents": types}
	}
	ragged := attrs(pb.TypeSpecProto_RAGGED_TENSOR_SPEC, tensor.Int64, tensor.String)
	made := kerneltest.Run(t, "CompositeTensorVariantFromComponents", ragged, parts...)[0]

	// Decode both the local variant and one that came over the wire.
	encoded, err := tensor.Value[tensor.VariantValue](&made).Encode()
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := encoded.Decode()
	if err != nil {
		t.Fatal(err)
	}
	travelled := tensor.Scalar(tensor.VariantValue{Value: decoded})
	for _, v := range []tensor.Tensor{made, travelled} {
		got := kerneltest.Run(t, "CompositeTensorVariantToComponents", ragged, v)
		for i := range parts {
			if diff := kerneltest.Diff(&got[i], &parts[i], 0); diff != "" {
				t.Errorf("component %d: %s", i, diff)
			}
		}
	}

	for _, tt := range []struct {
		name  string
		attrs opdef.Attrs
		in    tensor.Tensor
		want  string
	}{
		{"metadata", opdef.Attrs{"metadata": "\x08", "Tcomponents": []tensor.DType{}}, made, "Error parsing `metadata`"},
		{"class", attrs(pb.TypeSpecProto_SPARSE_TENSOR_SPEC, tensor.Int64, tensor.String), made,
			"Expected a SPARSE_TENSOR_SPEC (based on `type_spec`), but `encoded` contains a RAGGED_TENSOR_SPEC"},
		{"number", attrs(pb.TypeSpecProto_RAGGED_TENSOR_SPEC, tensor.Int64), made,
			"Encoded value has 2 tensor components; expected 1 components based on type_spec"},
		{"type", attrs(pb.TypeSpecProto_RAGGED_TENSOR_SPEC, tensor.Int64, tensor.Int32), made,
			"Tensor component 1 had dtype DT_STRING; expected dtype DT_INT32"},
		{"another variant", ragged, tensor.Scalar(tensor.VariantValue{}),
			"The input `encoded` is not a valid CompositeTensorVariant tensor, got Tensor<type: variant shape: [] values: ?>"},
		{"none", ragged, tensor.Vector[tensor.VariantValue](),
			"Input `encoded` must not be an empty variant tensor, but got Tensor<type: variant shape: [0] values: >"},
	} {
		if _, err := kerneltest.Try("CompositeTensorVariantToComponents", tt.attrs, tt.in); err == nil || err.Error() != tt.want {
			t.Errorf("%s: %v, want %s", tt.name, err, tt.want)
		}
	}
	if _, err := kerneltest.Try("CompositeTensorVariantFromComponents", opdef.Attrs{"metadata": "\x08", "Tcomponents": []tensor.DType{}}); err == nil ||
		err.Error() != "Error parsing metadata" {
		t.Errorf("metadata: %v", err)
	}
}
