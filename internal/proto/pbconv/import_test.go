package pbconv

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/pass/loopframe"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/test/graphtext"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

const importOps = `
	Const() -> (output: dtype) [value: tensor; dtype: type]
	NoOp()
	Identity(input: T) -> (output: T) [T: type]
	Add(x: T, y: T) -> (z: T) [T: {float, int32}]
	Merge(inputs: N * T) -> (output: T, value_index: int32) [T: type; N: int >= 1]
	Enter(data: T) -> (output: T) [T: type; frame_name: string]
	Exit(data: T) -> (output: T) [T: type]
	NextIteration(data: T) -> (output: T) [T: type]
	Shape(input: T) -> (output: out_type) [T: type; out_type: type = int32]
	Fill(dims: I, value: T) -> (output: T) [T: type; I: type]
	_Arg() -> (output: T) [T: type; index: int >= 0]
	_Retval(input: T) [T: type; index: int >= 0]
`

func importTestOps(t testing.TB) graphtext.Ops {
	t.Helper()
	ops, err := graphtext.ParseOps(importOps)
	if err != nil {
		t.Fatal(err)
	}
	ops["Fill"].Shape = opdef.ValueShape(0)
	ops["Identity"].Shape = opdef.SameShape
	return ops
}

// importSample is a graph with a loop and a call of a recursive function.
func importSample() *graph.Def {
	f32 := opdef.Attrs{"T": tensor.Float32}
	n := func(name, op string, attrs opdef.Attrs, inputs ...string) graph.NodeDef {
		return graph.NodeDef{Name: name, Op: op, Inputs: inputs, Attrs: attrs}
	}
	return &graph.Def{
		Nodes: []graph.NodeDef{
			n("c", "Const", opdef.Attrs{"dtype": tensor.Float32, "value": tensor.Scalar(float32(1))}),
			n("e", "Enter", opdef.Attrs{"T": tensor.Float32, "frame_name": "f"}, "c"),
			n("m", "Merge", opdef.Attrs{"T": tensor.Float32, "N": int64(2)}, "e", "i"),
			n("i", "NextIteration", f32, "m"), n("x", "Exit", f32, "m"), n("f", "F", f32, "x", "^c"),
			n("s", "Shape", f32, "f"), n("l", "Fill", opdef.Attrs{"T": tensor.Float32, "I": tensor.Int32}, "s", "c"),
		},
		Library: []graph.FunctionDef{{
			Signature: opdef.Op{
				Name: "F", Inputs: []opdef.Arg{{Name: "x", TypeAttr: "T"}}, Outputs: []opdef.Arg{{Name: "y", TypeAttr: "T"}},
				Attrs: []opdef.Attr{{Name: "T", Kind: "type"}},
			},
			Nodes: []graph.NodeDef{
				n("a", "Add", opdef.Attrs{"T": opdef.Placeholder("T")}, "x", "x"), n("r", "F", opdef.Attrs{"T": opdef.Placeholder("T")}, "a:z:0"),
			},
			Ret: map[string]string{"y": "r:y:0"},
		}},
	}
}

// FuzzImport checks that no message causes a panic in the import of a graph, shape inference or the
// instantiation of functions. An imported graph can be exported and imported again.
func FuzzImport(f *testing.F) {
	p, err := GraphToProto(importSample())
	if err != nil {
		f.Fatal(err)
	}
	b, err := proto.Marshal(p)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	ops := importTestOps(f)
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
		g, err := graph.Import(def, ops, graph.ImportOptions{})
		if err != nil {
			return
		}
		_, _ = graph.InferShapes(g)
		_, _ = loopframe.Find(g)
		for _, name := range g.Library.Names() {
			_, _ = g.Library.InstantiateBody(opdef.Func{Name: name, Attrs: opdef.Attrs{"T": tensor.Float32}}, ops)
		}
		if _, err := graph.Import(g.Def(), ops, graph.ImportOptions{}); err != nil {
			t.Fatalf("%v\n%s", err, g.Summary())
		}
	})
}

// BenchmarkImport converts and imports a graph of 100,000 nodes.
func BenchmarkImport(b *testing.B) {
	def := &graph.Def{Nodes: importSample().Nodes[:1]}
	for i := range 100_000 {
		def.Nodes = append(def.Nodes, graph.NodeDef{
			Name: fmt.Sprintf("scope/node_%d", i), Op: "Add", Inputs: []string{"c", "c"}, Attrs: opdef.Attrs{"T": tensor.Float32},
		})
	}
	p, err := GraphToProto(def)
	if err != nil {
		b.Fatal(err)
	}
	ops := importTestOps(b)
	for b.Loop() {
		def, err := GraphFromProto(p)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := graph.Import(def, ops, graph.ImportOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}
