package graph_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// A node has at most as many inputs as its definition names, and the outputs of all nodes have a
// bound: an attribute of a few bytes stands for a million.
func TestNodesWithManyEnds(t *testing.T) {
	var adds []graph.NodeDef
	for i := range 300 {
		adds = append(adds, withAttrs(node(fmt.Sprint("a", i), "AddN"), opdef.Attrs{"N": int64(1 << 20), "T": tensor.Float32}))
	}
	_, err := graph.Import(&graph.Def{Nodes: adds}, testOps(t), graph.ImportOptions{})
	if status.CodeOf(err) != status.InvalidArgument || !strings.Contains(fmt.Sprint(err), "do not match 0 inputs") {
		t.Errorf("nodes without inputs: %.200v", err)
	}
	splits := []graph.NodeDef{constant("c")}
	for i := range 17 {
		splits = append(splits, withAttrs(node(fmt.Sprint("s", i), "Split", "c"), opdef.Attrs{"n": int64(1 << 20), "T": tensor.Float32}))
	}
	_, err = graph.Import(&graph.Def{Nodes: splits}, testOps(t), graph.ImportOptions{})
	if status.CodeOf(err) != status.ResourceExhausted {
		t.Errorf("nodes with many outputs: %v", err)
	}
}

func limitMemory(t *testing.T, n int64) {
	t.Helper()
	t.Cleanup(func() { membudget.SetLimit(0) })
	membudget.SetLimit(n)
}

// The defaults of a function's attributes are copied to each node that calls it.
func TestManyAttributes(t *testing.T) {
	f := fn("F", nil, nil, nil)
	for i := range 10_000 {
		f.Signature.Attrs = append(f.Signature.Attrs, opdef.Attr{Name: fmt.Sprint("a", i), Kind: "int", Default: int64(0)})
	}
	var calls []graph.NodeDef
	for i := range 400 {
		calls = append(calls, node(fmt.Sprint("n", i), "F"))
	}
	limitMemory(t, 128<<20)
	_, err := graph.Import(&graph.Def{Nodes: calls, Library: []graph.FunctionDef{f}}, testOps(t), graph.ImportOptions{})
	if status.CodeOf(err) != status.ResourceExhausted {
		t.Error(err)
	}
}

// The attributes of a body are copied for each call, and those of an argument for each of its
// tensors.
func TestBodiesWithManyAttributes(t *testing.T) {
	many := opdef.Attrs{}
	for i := range 20_000 {
		many[fmt.Sprint("_", i)] = int64(i)
	}
	f := fn("F", nil, nil, nil, withAttrs(node("n", "NoOp"), many))
	g := fn("G", []opdef.Arg{{Name: "x", DType: tensor.Float32, NumberAttr: "N"}}, nil, nil)
	g.Signature.Attrs, g.ArgAttrs = []opdef.Attr{{Name: "N", Kind: "int"}}, map[int]opdef.Attrs{0: many}
	limitMemory(t, 96<<20)
	var kept []*graph.Body
	var err error
	for len(kept) < 80 && err == nil {
		var body *graph.Body
		body, err = instantiate(t, opdef.Func{Name: "F"}, f)
		kept = append(kept, body)
	}
	if status.CodeOf(err) != status.ResourceExhausted {
		t.Errorf("after %d bodies: %v", len(kept), err)
	}
	clear(kept)
	if _, err := instantiate(t, opdef.Func{Name: "G", Attrs: attrs{"N": int64(80)}}, g); status.CodeOf(err) != status.ResourceExhausted {
		t.Errorf("arguments: %v", err)
	}
}

// An argument or an output of the body stands for many tensors, and each has a name.
func TestBodyWithManyTensors(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	list := opdef.Attrs{"N": int64(1000), "T": tensor.Float32}
	for name, f := range map[string]graph.FunctionDef{
		"names of arguments": {Signature: opdef.Op{Name: "F", Inputs: []opdef.Arg{{Name: long, DType: tensor.Float32, NumberAttr: "N"}}}},
		"names of outputs": {Signature: opdef.Op{Name: "F"}, Nodes: []graph.NodeDef{
			constant("c"), withAttrs(node(long, "Split", "c:output:0"), opdef.Attrs{"n": int64(1000), "T": tensor.Float32}),
			withAttrs(node("a", "AddN", long+":parts"), list),
		}},
		"names of results": {Signature: opdef.Op{Name: "F", Outputs: []opdef.Arg{{Name: long, DType: tensor.Float32, NumberAttr: "N"}}},
			Nodes: []graph.NodeDef{
				constant("c"), withAttrs(node("s", "Split", "c:output:0"), opdef.Attrs{"n": int64(1000), "T": tensor.Float32}),
			}, Ret: map[string]string{long: "s:parts"}},
	} {
		f.Signature.Attrs = []opdef.Attr{{Name: "N", Kind: "int"}}
		t.Run(name, func(t *testing.T) {
			limitMemory(t, 256<<20)
			if _, err := instantiate(t, opdef.Func{Name: "F", Attrs: attrs{"N": int64(1000)}}, f); status.CodeOf(err) != status.ResourceExhausted {
				t.Errorf("%.200v", err)
			}
		})
	}
	f := fn("F", nil, nil, nil, constant("c"), withAttrs(node("s", "Split", "c:output:0"), opdef.Attrs{"n": int64(1 << 20), "T": tensor.Float32}))
	for i := range 17 {
		f.Nodes = append(f.Nodes, withAttrs(node(fmt.Sprint("a", i), "AddN", "s:parts"), opdef.Attrs{"N": int64(1 << 20), "T": tensor.Float32}))
	}
	if _, err := instantiate(t, opdef.Func{Name: "F"}, f); status.CodeOf(err) != status.ResourceExhausted {
		t.Errorf("inputs: %.200v", err)
	}
}

// The time of a body must not grow with the square of the number of its results or inputs.
func TestBodyInLinearTime(t *testing.T) {
	const n = 100_000
	f := fn("F", nil, nil, map[string]string{"y": "c:output:0"}, constant("c"))
	f.Signature.Outputs = make([]opdef.Arg, n) // of one name
	for i := range f.Signature.Outputs {
		f.Signature.Outputs[i] = opdef.Arg{Name: "y", DType: tensor.Float32}
	}
	if _, err := instantiate(t, opdef.Func{Name: "F"}, f); err != nil {
		t.Errorf("results: %v", err)
	}
	f = fn("F", nil, nil, nil, constant("c"), withAttrs(node("s", "Split", "c:output:0"), opdef.Attrs{"n": int64(n), "T": tensor.Float32}),
		withAttrs(node("a", "AddN"), opdef.Attrs{"N": int64(n), "T": tensor.Float32}))
	for i := range n {
		f.Nodes[2].Inputs = append(f.Nodes[2].Inputs, fmt.Sprint("s:parts:", i))
	}
	if _, err := instantiate(t, opdef.Func{Name: "F"}, f); err != nil {
		t.Errorf("inputs: %v", err)
	}
}

// The text of an error does not grow with the product of the number of inputs and the size of a
// shape or of a name.
func TestErrorsOfManyInputs(t *testing.T) {
	dims := make([]int64, tensor.MaxRank)
	for i := range dims {
		dims[i] = -1
	}
	nodes := placeholder(opdef.Attrs{"dtype": tensor.Float32, "shape": tensor.MakePartial(dims...)})
	nodes = append(nodes, withAttrs(node("sum", "AddN"), opdef.Attrs{"N": int64(100_000), "T": tensor.Float32}))
	nodes[1].Inputs = slices.Repeat([]string{"a"}, 100_000)
	ops := testOps(t)
	ops["AddN"].Shape = func(*opdef.ShapeContext) error { return status.InvalidArgumentf("no") }
	g, err := graph.Import(&graph.Def{Nodes: nodes}, ops, graph.ImportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := graph.InferShapes(g); err == nil || len(err.Error()) > 2<<20 {
		t.Errorf("the text of the error has %d bytes", len(fmt.Sprint(err)))
	}
	d := graph.NodeDef{Name: "n", Op: "AddN", Inputs: slices.Repeat([]string{strings.Repeat("x", 1<<20)}, 100)}
	if n := len(d.Summary()); n > 4<<20 {
		t.Errorf("a summary has %d bytes", n)
	}
}

// Operations of functions in the old form are found in constant time.
func TestManyOldFunctions(t *testing.T) {
	defs := make([]graph.FunctionDef, 30_000)
	for i := range defs {
		defs[i] = oldFunction()
		defs[i].Signature.Name = fmt.Sprint("F", i)
	}
	began := time.Now()
	if _, err := graph.Import(&graph.Def{Library: defs}, testOps(t), graph.ImportOptions{}); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("took %v", took)
	}
}

// The definition of a function is made in a time in proportion to the inputs of its nodes.
func TestFunctionDefOfManyOutputs(t *testing.T) {
	const n = 20_000
	f := fn("F", nil, nil, map[string]string{}, constant("c"))
	for i := range n {
		name := fmt.Sprint("y", i)
		f.Signature.Outputs = append(f.Signature.Outputs, opdef.Arg{Name: name, DType: tensor.Float32})
		f.Ret[name] = "c:output:0"
	}
	sum := withAttrs(node("sum", "AddN"), opdef.Attrs{"N": int64(n), "T": tensor.Float32})
	for i := range n {
		sum.Inputs = append(sum.Inputs, fmt.Sprint("call:", i))
	}
	g, err := graph.Import(&graph.Def{Nodes: []graph.NodeDef{node("call", "F"), sum}, Library: []graph.FunctionDef{f}}, testOps(t),
		graph.ImportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	def, err := g.FunctionDef("G")
	if err != nil {
		t.Fatal(err)
	}
	if got := def.Nodes[1].Inputs; got[0] != "call:y0:0" || got[n-1] != fmt.Sprintf("call:y%d:0", n-1) {
		t.Errorf("the inputs are %s to %s", got[0], got[n-1])
	}
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("took %v", took)
	}
}
