package pbconv

import (
	"reflect"
	"testing"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func TestSymbolicDimensions(t *testing.T) {
	shape := &pb.TensorShapeProto{Dim: []*pb.TensorShapeProto_Dim{{Size: -12}, {Size: 3}, {Size: -1}}}
	list := &pb.AttrValue{Value: &pb.AttrValue_List{List: &pb.AttrValue_ListValue{Shape: []*pb.TensorShapeProto{shape}}}}
	single := &pb.AttrValue{Value: &pb.AttrValue_Shape{Shape: shape}}
	attrs, err := AttrsFromProto(map[string]*pb.AttrValue{"_input_shapes": list, "_shape": single})
	if err != nil {
		t.Fatal(err)
	}
	want := tensor.MakePartial(tensor.UnknownDim, 3, tensor.UnknownDim)
	if got := attrs.Shape("_shape"); !reflect.DeepEqual(got, want) {
		t.Errorf("the shape is %v, want %v", got, want)
	}
	if got := attrs.Shapes("_input_shapes"); !reflect.DeepEqual(got, []tensor.PartialShape{want}) {
		t.Errorf("the shapes are %v, want %v", got, want)
	}
	if shape.GetDim()[0].GetSize() != -12 {
		t.Error("the message was modified")
	}
	if _, err := AttrsFromProto(map[string]*pb.AttrValue{"shape": single}); status.CodeOf(err) != status.InvalidArgument {
		t.Errorf("an attribute of an operation: %v", err)
	}
}
