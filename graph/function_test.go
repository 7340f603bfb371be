package graph_test

import (
	"strings"
	"testing"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

type attrs = opdef.Attrs

// fn returns the definition of a function, from arguments in the format of Op.String, nodes, and
// results in the form "name=value".
func fn(name string, in, out []opdef.Arg, ret map[string]string, nodes ...graph.NodeDef) graph.FunctionDef {
	return graph.FunctionDef{Signature: opdef.Op{Name: name, Inputs: in, Outputs: out}, Nodes: nodes, Ret: ret}
}

func arg(name string, dtype tensor.DType) []opdef.Arg { return []opdef.Arg{{Name: name, DType: dtype}} }

func instantiate(t *testing.T, call opdef.Func, defs ...graph.FunctionDef) (*graph.Body, error) {
	t.Helper()
	g, err := graph.Import(&graph.Def{Library: defs}, testOps(t), graph.ImportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return g.Library.InstantiateBody(call, g.Ops())
}

func TestInstantiateBody(t *testing.T) {
	f := graph.FunctionDef{
		Signature: opdef.Op{
			Name: "F",
			Inputs: []opdef.Arg{
				{Name: "x", TypeAttr: "T"}, {Name: "xs", TypeAttr: "T", NumberAttr: "N"}, {Name: "low", DType: tensor.Int32},
			},
			Outputs:        []opdef.Arg{{Name: "y", TypeAttr: "T"}, {Name: "all", TypeListAttr: "L"}},
			ControlOutputs: []string{"done"},
			Attrs: []opdef.Attr{
				{Name: "T", Kind: "type"}, {Name: "N", Kind: "int"}, {Name: "L", Kind: "list(type)"},
				{Name: "n", Kind: "int", Default: int64(2)},
			},
		},
		Nodes: []graph.NodeDef{
			{Name: "sum", Op: "AddN", Inputs: []string{"xs", "^call"}, Attrs: attrs{"T": opdef.Placeholder("T"), "N": opdef.Placeholder("N")}},
			{Name: "low", Op: "Split", Inputs: []string{"sum:sum:0"}, Attrs: attrs{"T": opdef.Placeholder("T"), "n": opdef.Placeholder("n")}},
			{Name: "call", Op: "PartitionedCall", Inputs: []string{"xs:1", "^x"}, Device: "/job:ps", Attrs: attrs{
				"Tin": []tensor.DType{tensor.Float32}, "Tout": []tensor.DType{},
				"f": opdef.Func{Name: "G", Attrs: attrs{"T": opdef.Placeholder("T")}},
			}},
			{Name: "case", Op: "Case", Inputs: []string{"low"}, Attrs: attrs{
				"branches": []opdef.Func{{Name: "F", Attrs: attrs{"N": opdef.Placeholder("N")}}},
			}},
		},
		Ret:        map[string]string{"y": "low:parts:1", "all": "low:parts"},
		ControlRet: map[string]string{"done": "case"},
		ArgAttrs:   map[int]opdef.Attrs{0: {"_user_specified_name": "x"}},
	}
	call := opdef.Func{Name: "F", Attrs: attrs{"T": tensor.Float32, "N": int64(2), "L": []tensor.DType{tensor.Float32, tensor.Float32}}}
	body, err := instantiate(t, call, f)
	if err != nil {
		t.Fatal(err)
	}
	const want = `
{{node x}} = _Arg[T=DT_FLOAT, _user_specified_name="x", index=0]()
{{node xs_0}} = _Arg[T=DT_FLOAT, index=1]()
{{node xs_1}} = _Arg[T=DT_FLOAT, index=2]()
{{node low__1}} = _Arg[T=DT_INT32, index=3]()
{{node sum}} = AddN[N=2, T=DT_FLOAT](xs_0, xs_1, ^call)
{{node low}} = Split[T=DT_FLOAT, n=2](sum)
{{node call}} = PartitionedCall[Tin=[DT_FLOAT], Tout=[], f=G[T=DT_FLOAT], _device="/job:ps"](xs_1, ^x)
{{node case}} = Case[branches=[F[N=2]]](low__1)
{{node y_RetVal}} = _Retval[T=DT_FLOAT, index=0](low:2)
{{node all_RetVal_0}} = _Retval[T=DT_FLOAT, index=1](low:1)
{{node all_RetVal_1}} = _Retval[T=DT_FLOAT, index=2](low:2)
`
	if got := body.Graph.Summary(); got != strings.TrimPrefix(want, "\n") {
		t.Errorf("got\n%swant%s", got, want)
	}
	if len(body.Args) != 4 || body.Args[3].Name != "low__1" || len(body.Rets) != 3 || body.Rets[0].Name != "y_RetVal" ||
		len(body.Controls) != 1 || body.Controls[0].Name != "case" {
		t.Errorf("the nodes of arguments and results are %v, %v, %v", body.Args, body.Rets, body.Controls)
	}
	checkEdges(t, body.Graph)
}

// TestRecursiveFunction checks that instantiating a recursive function does not instantiate its
// calls of itself.
func TestRecursiveFunction(t *testing.T) {
	f := fn("F", arg("x", tensor.Float32), arg("y", tensor.Float32), map[string]string{"y": "again:y:0"},
		graph.NodeDef{Name: "again", Op: "F", Inputs: []string{"x"}})
	body, err := instantiate(t, opdef.Func{Name: "F"}, f)
	if err != nil {
		t.Fatal(err)
	}
	n := body.Graph.Node("again")
	if again, err := body.Graph.Library.InstantiateBody(opdef.Func{Name: n.Op.Name}, body.Graph.Ops()); err != nil || again.Graph.NumNodes() != 3 {
		t.Errorf("the inner call: %v, %v", again, err)
	}
}

func TestInstantiationErrors(t *testing.T) {
	f32, i32 := tensor.Float32, tensor.Int32
	identity := func(input string) graph.NodeDef {
		return graph.NodeDef{Name: "n", Op: "Identity", Inputs: []string{input}, Attrs: attrs{"T": f32}}
	}
	out := map[string]string{"y": "n:output:0"}
	withAttr := fn("F", nil, []opdef.Arg{{Name: "y", TypeAttr: "T"}}, out)
	withAttr.Signature.Attrs = []opdef.Attr{{Name: "T", Kind: "type"}}
	withControl := fn("F", nil, nil, nil)
	withControl.Signature.ControlOutputs = []string{"done"}
	tests := []struct {
		name string
		f    graph.FunctionDef
		want string
	}{
		{"another name", fn("G", nil, nil, nil), "Function F is not defined."},
		{"no attribute", withAttr, "Attr T is not found from Op<name=F; signature= -> y:T; attr=T:type>"},
		{"no result", fn("F", nil, arg("y", f32), nil), "Return y missing.\n\tIn function output y:float"},
		{"unknown result", fn("F", nil, arg("y", f32), map[string]string{"y": "z:o:0"}),
			"Return y -> z:o:0 is not found.\n\tIn function output y:float"},
		{"type of a result", fn("F", arg("x", i32), arg("y", f32), map[string]string{"y": "x"}),
			"Invalid ret types y : float vs. int32\n\tIn function output y:float"},
		{"unknown input", fn("F", nil, arg("y", f32), out, identity("q")), "input q is not found: {{node n}}\n\tIn {{node n}}"},
		{"output as a graph writes it", fn("F", arg("x", f32), arg("y", f32), out, identity("n:0")),
			"input n:0 is not found: {{node n}}\n\tIn {{node n}}"},
		{"index of an output", fn("F", arg("x", f32), arg("y", f32), out, identity("n:output:1")),
			"input n:output:1 is not found: {{node n}}\n\tIn {{node n}}"},
		{"type of an input", fn("F", arg("x", i32), arg("y", f32), out, identity("x")),
			"input input[0] expected type float != int32, the type of x[0]\n\tIn {{node n}}"},
		{"too few inputs", fn("F", nil, nil, nil, graph.NodeDef{Name: "n", Op: "Identity", Attrs: attrs{"T": f32}}),
			"Attempt to access beyond input size: 0 >= 0\n\tIn {{node n}}"},
		{"too many inputs", fn("F", arg("x", f32), nil, nil, graph.NodeDef{Name: "n", Op: "NoOp", Inputs: []string{"x"}}),
			"Expected input[0] == 'x' to be a control input.\n\tIn {{node n}}"},
		{"unknown control input", fn("F", nil, nil, nil, graph.NodeDef{Name: "n", Op: "NoOp", Inputs: []string{"^q"}}),
			"input[0] == '^q', is not found.\n\tIn {{node n}}"},
		{"unknown operation", fn("F", nil, nil, nil, graph.NodeDef{Name: "n", Op: "Nope"}), "Op type not registered 'Nope'"},
		{"repeated argument", fn("F", append(arg("x", f32), arg("x", f32)...), nil, nil), "Duplicated arg name: x\n\tIn x:float"},
		{"repeated node", fn("F", nil, nil, nil, graph.NodeDef{Name: "n", Op: "NoOp"}, graph.NodeDef{Name: "n", Op: "NoOp"}),
			"Node 'n' is not unique"},
		{"unbound", fn("F", nil, nil, nil, graph.NodeDef{Name: "n", Op: "Identity", Attrs: attrs{"T": opdef.Placeholder("T")}}),
			"Failed to bind all placeholders in $T"},
		{"control output", withControl, "Control output done of function 'F' is not found."},
		{"cycle", fn("F", nil, nil, nil, graph.NodeDef{Name: "n", Op: "NoOp", Inputs: []string{"^m"}},
			graph.NodeDef{Name: "m", Op: "NoOp", Inputs: []string{"^n"}}), "function 'F': 2 nodes in a cycle"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := instantiate(t, opdef.Func{Name: "F"}, test.f)
			if err == nil || !strings.HasPrefix(err.Error(), test.want) {
				t.Fatalf("got  %v\nwant %s", err, test.want)
			}
			if code := status.CodeOf(err); code != status.InvalidArgument && code != status.NotFound {
				t.Errorf("code is %v", code)
			}
		})
	}
}

func TestLibrary(t *testing.T) {
	g, err := graph.Import(&graph.Def{
		Library: []graph.FunctionDef{fn("F", nil, nil, nil), fn("F", nil, nil, nil)}, Gradient: map[string]string{"F": "G"},
	}, testOps(t), graph.ImportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	stateful := fn("F", nil, nil, nil)
	stateful.Signature.Stateful = true
	for _, test := range []struct {
		def  graph.Def
		want string
	}{
		{graph.Def{Library: []graph.FunctionDef{fn("H", nil, nil, nil), stateful}},
			"Cannot add function 'F' because a different function with the same name already exists."},
		{graph.Def{Library: []graph.FunctionDef{fn("Add", nil, nil, nil)}},
			"Cannot add function 'Add' because an op with the same name already exists."},
		{graph.Def{Gradient: map[string]string{"F": "H"}},
			"Cannot assign gradient function 'H' to 'F' because it already has gradient function 'G'"},
		{graph.Def{Library: []graph.FunctionDef{{}}}, "function 0 of the library has no name"},
	} {
		if err := g.Extend(&test.def); err == nil || err.Error() != test.want {
			t.Errorf("got %v, want %s", err, test.want)
		}
	}
	if names := strings.Join(g.Library.Names(), " "); names != "F" || g.Library.Gradient("F") != "G" {
		t.Errorf("the library has %s", names)
	}
	if err := g.Extend(&graph.Def{Nodes: []graph.NodeDef{{Name: "f", Op: "F"}}}); err != nil {
		t.Errorf("a node that calls a function: %v", err)
	}
	def := g.Def()
	if len(def.Library) != 1 || def.Gradient["F"] != "G" || len(def.Nodes) != 1 {
		t.Errorf("got definition %+v", def)
	}
}

// The attributes of functions in an attribute have a bound. A function that names its attribute
// twice in that of the next call doubles it with each call.
func TestAttributesThatGrow(t *testing.T) {
	grow := opdef.Func{Name: "G", Attrs: attrs{"a": opdef.Placeholder("g"), "b": opdef.Placeholder("g")}}
	f := fn("F", arg("x", tensor.Int32), nil, nil, graph.NodeDef{Name: "case", Op: "Case", Inputs: []string{"x"}, Attrs: attrs{
		"branches": []opdef.Func{{Name: "F", Attrs: attrs{"g": grow}}},
	}})
	f.Signature.Attrs = []opdef.Attr{{Name: "g", Kind: "func"}}
	call := opdef.Func{Name: "F", Attrs: attrs{"g": opdef.Func{Name: "G", Attrs: attrs{"s": strings.Repeat("x", 1<<20)}}}}
	for range 12 {
		body, err := instantiate(t, call, f)
		if err != nil {
			if status.CodeOf(err) != status.ResourceExhausted || !strings.Contains(err.Error(), "'case' in function 'F'") {
				t.Error(err)
			}
			return
		}
		call = body.Graph.Node("case").Attrs.Funcs("branches")[0]
	}
	t.Errorf("an attribute of %d bytes", len(opdef.FormatAttr(call)))
}
