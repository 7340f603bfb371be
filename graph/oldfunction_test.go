package graph_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// oldFunction returns a function as Python programs of TensorFlow 0.12 write it.
func oldFunction() graph.FunctionDef {
	float := attrs{"T": tensor.Float32}
	return graph.FunctionDef{
		Signature: opdef.Op{
			Name: "F", Inputs: arg("x", tensor.Float32),
			Outputs: []opdef.Arg{{Name: "sum", DType: tensor.Float32}, {Name: "x", DType: tensor.Float32}},
		},
		Nodes: []graph.NodeDef{
			{Op: "Split", Inputs: []string{"x"}, Attrs: attrs{"T": tensor.Float32, "n": int64(2)}},
			{Op: "IdentityN", Inputs: []string{"parts"}, Attrs: attrs{"T": []tensor.DType{tensor.Float32, tensor.Float32}}},
			{Op: "NoOp", Inputs: []string{"^high", "^x"}},
			{Op: "Add", Inputs: []string{"same:1", "low", "^nothing"}, Attrs: float},
		},
		OldOutputs: [][]string{{"low", "parts", "high"}, {"same"}, {"nothing"}, {"sum"}},
	}
}

func TestOldFunction(t *testing.T) {
	g, err := graph.Import(&graph.Def{Library: []graph.FunctionDef{oldFunction()}}, testOps(t), graph.ImportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got := g.Def().Library[0]
	var nodes []string
	for _, n := range got.Nodes {
		nodes = append(nodes, n.Name+"("+strings.Join(n.Inputs, " ")+")")
	}
	want := []string{"low(x)", "same(low:parts)", "nothing(^low ^x)", "sum(same:output:1 low:low:0 ^nothing)"}
	if !reflect.DeepEqual(nodes, want) {
		t.Errorf("the nodes are %q, want %q", nodes, want)
	}
	if want := map[string]string{"sum": "sum:z:0", "x": "x"}; !reflect.DeepEqual(got.Ret, want) || got.OldOutputs != nil {
		t.Errorf("the results are %v, want %v", got.Ret, want)
	}
	// A function that is there already may come again in its old form.
	if err := g.Extend(&graph.Def{Library: []graph.FunctionDef{oldFunction()}}); err != nil {
		t.Error(err)
	}
	if _, err := g.Library.InstantiateBody(opdef.Func{Name: "F"}, g.Ops()); err != nil {
		t.Error(err)
	}
}

func TestOldFunctionErrors(t *testing.T) {
	for _, tt := range []struct {
		change func(*graph.FunctionDef)
		want   string
	}{
		{func(f *graph.FunctionDef) { f.OldOutputs[2] = nil }, "function 'F': node 2 (NoOp) has no output"},
		{func(f *graph.FunctionDef) { f.OldOutputs[0] = []string{"low"} }, "node 'low' has 1 outputs, not the 3 of Op<name=Split"},
		{func(f *graph.FunctionDef) { f.OldOutputs[2] = []string{"low"} }, "Duplicated ret name: low"},
		{func(f *graph.FunctionDef) { f.Nodes[2].Op = "None" }, "Op type not registered 'None'"},
	} {
		f := oldFunction()
		tt.change(&f)
		_, err := graph.Import(&graph.Def{Library: []graph.FunctionDef{f}}, testOps(t), graph.ImportOptions{})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("error %v, want %q", err, tt.want)
		}
	}
}
