package savedmodel

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/prototext"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/proto/pbconv"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func imported(t *testing.T, def *graph.Def) string {
	t.Helper()
	g, err := graph.Import(def, op.Defs, graph.ImportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return g.Summary()
}

func TestGraphFiles(t *testing.T) {
	m, err := Open(recorded)
	if err != nil {
		t.Fatal(err)
	}
	def, dir := m.MetaGraphs[0].Graph, t.TempDir()
	binary, text, junk := filepath.Join(dir, "g.pb"), filepath.Join(dir, "g.pbtxt"), filepath.Join(dir, "junk")
	p, err := pbconv.GraphToProto(def)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		WriteGraph(binary, def), os.WriteFile(text, []byte(prototext.Format(p)), 0o600), os.WriteFile(junk, []byte("node { name: }"), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{binary, text} {
		got, err := ReadGraph(path)
		if err != nil {
			t.Fatal(err)
		}
		if imported(t, got) != imported(t, def) {
			t.Errorf("%s holds a different graph", path)
		}
	}
	if _, err := ReadGraph(junk); status.CodeOf(err) != status.DataLoss || !strings.Contains(err.Error(), "not a GraphDef") {
		t.Errorf("for junk got %v", err)
	}
}

func TestStripDefaults(t *testing.T) {
	s := op.NewScope()
	x := op.Placeholder(s.Named("x"), tensor.Float32)
	op.MatMul(s.Named("y"), x, x, op.MatMulTransposeB(true))
	op.NewFunction(s, "f", []tensor.DType{tensor.Float32}, func(s *op.Scope, x []op.Output) []op.Output {
		return []op.Output{op.MatMul(s, x[0], x[0])}
	})
	g, err := s.Finalize()
	if err != nil {
		t.Fatal(err)
	}
	matMul, _ := op.Defs.LookupOp("MatMul")
	m := &MetaGraph{Graph: g.Def(), Ops: []*opdef.Op{matMul}}
	before := imported(t, m.Graph)
	m.StripDefaults()
	attrs, inFunction := m.Graph.Nodes[1].Attrs, m.Graph.Library[0].Nodes[0].Attrs
	if _, kept := attrs["transpose_a"]; kept || attrs["transpose_b"] != true || len(inFunction) != 1 || !m.DefaultsStripped {
		t.Errorf("the attributes are %v, and %v in the function", attrs, inFunction)
	}
	if imported(t, m.Graph) != before || len(g.Node("y").Attrs) < 3 {
		t.Error("the old graph was modified")
	}
}

func TestFreezeMistakes(t *testing.T) {
	s := op.NewScope()
	h := op.VarHandleOp(s.Named("v"), tensor.Float32, tensor.MakePartial())
	op.Identity(s.Named("read").WithControlDependencies(op.AssignAddVariableOp(s.Named("add"), h, op.Const(s, float32(1)))),
		op.ReadVariableOp(s, h, tensor.Float32))
	g, err := s.Finalize()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]tensor.Tensor{"v": tensor.Scalar(float32(1))}
	for _, tt := range []struct {
		output string
		values map[string]tensor.Tensor
		want   string
	}{
		{"none", values, "the graph has no node none"},
		{"read", values, "node add (op type: AssignAddVariableOp) cannot be frozen"},
		{"ReadVariableOp", nil, "variable v has no value"},
	} {
		if _, err := Freeze(g.Def(), []string{tt.output}, tt.values); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", tt.output, err, tt.want)
		}
	}
}
