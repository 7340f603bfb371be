package pbconv

import (
	"reflect"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func TestOldFunctionRoundTrip(t *testing.T) {
	def := &graph.Def{Library: []graph.FunctionDef{{
		Signature: opdef.Op{Name: "F"},
		Nodes: []graph.NodeDef{
			{Op: "Mul", Inputs: []string{"x", "y:1"}, Attrs: opdef.Attrs{"T": tensor.Float32}},
			{Op: "NoOp", Inputs: []string{"^mul", "^x"}},
		},
		OldOutputs: [][]string{{"mul", "other"}, {"done"}},
	}}}
	p, err := GraphToProto(def)
	if err != nil {
		t.Fatal(err)
	}
	b, err := proto.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var again pb.GraphDef
	if err := proto.Unmarshal(b, &again); err != nil {
		t.Fatal(err)
	}
	got, err := GraphFromProto(&again)
	if err != nil {
		t.Fatal(err)
	}
	want, f := def.Library[0], got.Library[0]
	if !reflect.DeepEqual(f.OldOutputs, want.OldOutputs) || len(f.Nodes) != 2 {
		t.Fatalf("the function is %+v, want %+v", f, want)
	}
	for i, n := range f.Nodes {
		if w := want.Nodes[i]; n.Op != w.Op || !reflect.DeepEqual(n.Inputs, w.Inputs) || len(n.Attrs) != len(w.Attrs) {
			t.Errorf("node %d is %+v, want %+v", i, n, w)
		}
	}
}

func TestOldFunctionErrors(t *testing.T) {
	for _, b := range []string{"\x12\x05ab", "\x12\x02\x0a\x09", "\x12"} {
		f := &pb.FunctionDef{}
		f.ProtoReflect().SetUnknown([]byte(b))
		_, err := GraphFromProto(&pb.GraphDef{Library: &pb.FunctionDefLibrary{Function: []*pb.FunctionDef{f}}})
		if status.CodeOf(err) != status.DataLoss {
			t.Errorf("%q: %v", b, err)
		}
	}
}
