package pbconv

import (
	"reflect"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/device"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// attrSamples has an attribute of every kind.
func attrSamples() opdef.Attrs {
	return opdef.Attrs{
		"s": "text", "i": int64(-3), "f": float32(0.5), "b": true, "type": tensor.Float32,
		"shape": tensor.MakePartial(2, -1), "unknown": tensor.PartialShape{}, "tensor": tensor.Vector[int32](1, 2),
		"func": opdef.Func{Name: "f", Attrs: opdef.Attrs{"T": tensor.Int32}}, "placeholder": opdef.Placeholder("T"),
		"empty": opdef.AnyList{}, "ls": []string{"a", ""}, "li": []int64{1}, "lf": []float32{1}, "lb": []bool{false},
		"ltype": []tensor.DType{tensor.Int32}, "lshape": []tensor.PartialShape{tensor.MakePartial(3)},
		"ltensor": []tensor.Tensor{tensor.Scalar("x")}, "lfunc": []opdef.Func{{Name: "g"}},
	}
}

func graphSample() *graph.Def {
	sig := opdef.Op{
		Name: "F", Doc: "Summary.\n\nDescription.", Stateful: true, ControlOutputs: []string{"done"},
		Inputs: []opdef.Arg{
			{Name: "x", TypeAttr: "T", NumberAttr: "N"}, {Name: "r", DType: tensor.Float32, IsRef: true}, {Name: "l", TypeListAttr: "L"},
		},
		Outputs: []opdef.Arg{{Name: "y", DType: tensor.Int32}},
		Attrs: []opdef.Attr{
			{Name: "T", Kind: "type", Types: []tensor.DType{tensor.Int32, tensor.Int64}, Default: tensor.Int32},
			{Name: "N", Kind: "int", HasMin: true, Min: 1},
			{Name: "L", Kind: "list(type)", Default: []tensor.DType{}},
			{Name: "mode", Kind: "string", Strings: []string{"a", "b"}, Default: "a"},
		},
	}
	return &graph.Def{
		Versions: graph.Versions{Producer: 2474, MinConsumer: 12, BadConsumers: []int{3}},
		Nodes: []graph.NodeDef{
			{Name: "a", Op: "Const", Device: "/job:ps", Attrs: attrSamples()},
			{Name: "b", Op: "Identity", Inputs: []string{"a:1", "^a"}},
		},
		Library: []graph.FunctionDef{{
			Signature: sig, Ret: map[string]string{"y": "n:out:0"}, ControlRet: map[string]string{"done": "n"},
			Nodes: []graph.NodeDef{{Name: "n", Op: "Id", Inputs: []string{"x"}, Attrs: opdef.Attrs{"T": opdef.Placeholder("T")}}},
			Attrs: opdef.Attrs{"_noinline": true}, ArgAttrs: map[int]opdef.Attrs{0: {"_user_specified_name": "x"}},
		}},
		Gradient: map[string]string{"F": "FGrad"},
	}
}

func TestGraphRoundTrip(t *testing.T) {
	want, err := GraphToProto(graphSample())
	if err != nil {
		t.Fatal(err)
	}
	def, err := GraphFromProto(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := GraphToProto(def)
	if err != nil {
		t.Fatal(err)
	}
	if !proto.Equal(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
}

func TestAttrsKeepTheirTypes(t *testing.T) {
	want := attrSamples()
	ps, err := AttrsToProto(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := AttrsFromProto(ps)
	if err != nil {
		t.Fatal(err)
	}
	for name, w := range want {
		g := got[name]
		if a, ok := g.(tensor.Tensor); ok {
			if b, ok := w.(tensor.Tensor); !ok || !sameTensor(&a, &b) {
				t.Errorf("%s: got %v, want %v", name, g, w)
			}
			continue
		}
		if name != "ltensor" && !reflect.DeepEqual(g, w) {
			t.Errorf("%s: got %#v, want %#v", name, g, w)
		}
	}
}

func TestAttrErrors(t *testing.T) {
	list := func(l *pb.AttrValue_ListValue) *pb.AttrValue {
		return &pb.AttrValue{Value: &pb.AttrValue_List{List: l}}
	}
	deep := &pb.AttrValue{Value: &pb.AttrValue_I{I: 1}}
	for range 200 {
		deep = &pb.AttrValue{Value: &pb.AttrValue_Func{Func: &pb.NameAttrList{Attr: map[string]*pb.AttrValue{"f": deep}}}}
	}
	tests := []struct {
		name string
		p    *pb.AttrValue
		want string
	}{
		{"type", &pb.AttrValue{Value: &pb.AttrValue_Type{Type: 4711}}, "AttrValue has invalid DataType enum: 4711"},
		{"list of types", list(&pb.AttrValue_ListValue{Type: []pb.DataType{-1}}), "AttrValue has invalid DataType enum: -1"},
		{"two lists", list(&pb.AttrValue_ListValue{I: []int64{1}, B: []bool{true}}), "a list of more than one type"},
		{"shape", &pb.AttrValue{Value: &pb.AttrValue_Shape{Shape: dims(-2)}}, "Shape [-2]"},
		{"tensor", &pb.AttrValue{Value: &pb.AttrValue_Tensor{}}, "a tensor cannot be of type DT_INVALID"},
		{"nesting", deep, "nested more than"},
	}
	for _, test := range tests {
		_, err := NodeFromProto(&pb.NodeDef{Name: "n", Attr: map[string]*pb.AttrValue{"a": test.p}})
		if status.CodeOf(err) != status.InvalidArgument || !strings.Contains(err.Error(), test.want) ||
			!strings.Contains(err.Error(), "attr 'a': ") || !strings.Contains(err.Error(), "{{node n}}") {
			t.Errorf("%s: got %v, want %q", test.name, err, test.want)
		}
	}
	if _, err := AttrToProto(int32(1)); status.CodeOf(err) != status.Internal {
		t.Errorf("an int32 passed as attribute: %v", err)
	}
}

func TestConflictingGradients(t *testing.T) {
	p := &pb.GraphDef{Library: &pb.FunctionDefLibrary{Gradient: []*pb.GradientDef{
		{FunctionName: "f", GradientFunc: "g"}, {FunctionName: "f", GradientFunc: "g"}, {FunctionName: "f", GradientFunc: "h"},
	}}}
	const want = "Cannot assign gradient function 'h' to 'f' because it already has gradient function 'g'"
	if _, err := GraphFromProto(p); err == nil || err.Error() != want {
		t.Errorf("got %v, want %q", err, want)
	}
}

func TestDevice(t *testing.T) {
	name, err := device.Parse("/job:ps/replica:0/task:1/device:CPU:0")
	if err != nil {
		t.Fatal(err)
	}
	p := DeviceToProto(name, 1<<28, 7)
	if got, err := DeviceFromProto(p); err != nil || got != name {
		t.Errorf("got %v, %v", got, err)
	}
	for _, bad := range []*pb.DeviceAttributes{
		nil, {Name: "garbage"}, {Name: "/job:ps/task:1/device:CPU:0", DeviceType: "CPU"}, {Name: p.Name, DeviceType: "GPU"},
	} {
		if _, err := DeviceFromProto(bad); status.CodeOf(err) != status.InvalidArgument {
			t.Errorf("%v: got %v", bad, err)
		}
	}
}

// FuzzGraph checks that no message causes a panic, and that a converted graph can be converted back
// and forth again.
func FuzzGraph(f *testing.F) {
	p, err := GraphToProto(graphSample())
	if err != nil {
		f.Fatal(err)
	}
	b, err := proto.Marshal(p)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		var p pb.GraphDef
		if proto.Unmarshal(b, &p) != nil {
			return
		}
		r := &reader{expansion: 1 << 20}
		for _, n := range p.GetNode() {
			if _, err := r.node(n); err != nil {
				return
			}
		}
		def, err := GraphFromProto(&p)
		if err != nil {
			return
		}
		q, err := GraphToProto(def)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := GraphFromProto(q); err != nil {
			t.Fatal(err)
		}
	})
}
