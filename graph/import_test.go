package graph_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/test/graphtext"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func constant(name string) graph.NodeDef {
	return graph.NodeDef{Name: name, Op: "Const", Attrs: opdef.Attrs{"dtype": tensor.Float32, "value": tensor.Scalar(float32(1))}}
}

func placeholder(attrs opdef.Attrs) []graph.NodeDef {
	return []graph.NodeDef{{Name: "a", Op: "Placeholder", Attrs: attrs}}
}

func node(name, op string, inputs ...string) graph.NodeDef {
	return graph.NodeDef{Name: name, Op: op, Inputs: inputs, Attrs: opdef.Attrs{"T": tensor.Float32}}
}

func withAttrs(n graph.NodeDef, attrs opdef.Attrs) graph.NodeDef {
	n.Attrs = attrs
	return n
}

// TestImportErrors checks for TensorFlow's error texts for invalid definitions.
func TestImportErrors(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	const placeholderOp = "Op<name=Placeholder; signature= -> output:dtype; attr=dtype:type; attr=shape:shape,default=<unknown>>"
	nodes := func(n ...graph.NodeDef) []graph.NodeDef { return n }
	tests := []struct {
		name  string
		nodes []graph.NodeDef
		want  string
	}{
		{"repeated name", nodes(constant("a"), constant("a")), "Node 'a' is not unique"},
		{"unknown input", nodes(node("b", "Identity", "zz")), "Node 'b': Unknown input node 'zz'"},
		{"unknown control input", nodes(node("b", "NoOp", "^zz")), "Node 'b': Unknown input node '^zz'"},
		{"illegal name", nodes(constant("a b!")), "Illegal op name 'a b!'\n\t [[{{node a b!}}]]"},
		{"name of the runtime", nodes(constant("_a")), "Illegal op name '_a'\n\t [[{{node _a}}]]"},
		{"no name", nodes(constant("")), "Illegal op name ''\n\t [[{{node }}]]"},
		{"unknown operation", nodes(node("a", "Foo")), "Op type not registered 'Foo' in binary running on " + host +
			". Make sure the Op and Kernel are registered in the binary running in this process.\n\t [[{{node a}}]]"},
		{"cycle of one", nodes(node("a", "Identity", "a")), "1 nodes in a cycle\n\t [[{{node a}}]]"},
		{"cycle of two", nodes(node("a", "Identity", "b"), node("b", "Identity", "a")),
			"2 nodes in a cycle\n\t [[{{node b}} -> {{node a}}]]"},
		{"nodes behind a cycle", nodes(node("c", "Identity", "b"), node("a", "Identity", "b"), node("b", "Identity", "a"), constant("d")),
			"3 nodes in a cycle\n\t [[{{node a}} -> {{node b}}]]"},
		{"control cycle", nodes(node("a", "NoOp", "^b"), node("b", "NoOp", "^a")), "2 nodes in a cycle\n\t [[{{node b}} -> {{node a}}]]"},
		{"iteration without merge", nodes(node("b", "NextIteration", "c"), node("c", "Identity", "b")),
			"2 nodes in a cycle\n\t [[{{node c}} -> {{node b}}]]"},
		{"loop that is never entered", nodes(
			withAttrs(node("m", "Merge", "n", "n"), opdef.Attrs{"T": tensor.Float32, "N": int64(2)}), node("n", "NextIteration", "m")),
			"2 nodes in a cycle\n\t [[{{node n}} -> {{node m}}]]"},
		{"missing attribute", placeholder(nil), "NodeDef missing attr 'dtype' from " + placeholderOp + "; NodeDef: {{node a}}"},
		{"missing attributes", nodes(graph.NodeDef{Name: "a", Op: "AddN"}),
			"NodeDef missing attrs 'N', 'T' from Op<name=AddN; signature=inputs:N*T -> sum:T; attr=N:int,min=1; attr=T:type>; NodeDef: {{node a}}"},
		{"wrong kind", placeholder(opdef.Attrs{"dtype": int64(1)}),
			"AttrValue had value with type 'int' when 'type' expected\n\t for attr 'dtype'\n\t; NodeDef: {{node a}}; " + placeholderOp},
		{"unknown type", placeholder(opdef.Attrs{"dtype": tensor.DType(77)}),
			"AttrValue has invalid DataType enum: 77\n\t for attr 'dtype'\n\t; NodeDef: {{node a}}; " + placeholderOp},
		{"reference type", placeholder(opdef.Attrs{"dtype": tensor.Float32.Ref()}),
			"AttrValue must not have reference type value of float_ref\n\t for attr 'dtype'\n\t; NodeDef: {{node a}}; " + placeholderOp},
		{"invalid type", placeholder(opdef.Attrs{"dtype": tensor.Invalid}),
			"AttrValue has invalid DataType\n\t for attr 'dtype'\n\t; NodeDef: {{node a}}; " + placeholderOp},
		{"no value", placeholder(opdef.Attrs{"dtype": opdef.AnyList{}}),
			"AttrValue missing value with expected type 'type'\n\t for attr 'dtype'\n\t; NodeDef: {{node a}}; " + placeholderOp},
		{"type that is not allowed", nodes(constant("a"), withAttrs(node("m", "Add", "a", "a"), opdef.Attrs{"T": tensor.String})),
			"Value for attr 'T' of string is not in the list of allowed values: float, int32\n\t; NodeDef: {{node m}}; " +
				"Op<name=Add; signature=x:T, y:T -> z:T; attr=T:type,allowed=[DT_FLOAT, DT_INT32]>"},
		{"string that is not allowed", nodes(constant("a"), withAttrs(node("m", "MaxPool", "a"),
			opdef.Attrs{"ksize": []int64{1, 1, 1, 1}, "padding": "FOO"})),
			"Value for attr 'padding' of \"FOO\" is not in the list of allowed values: \"SAME\", \"VALID\"\n\t; NodeDef: {{node m}}; " +
				"Op<name=MaxPool; signature=input:float -> output:float; attr=ksize:list(int),min=4; attr=padding:string,allowed=[\"SAME\", \"VALID\"]>"},
		{"too small", nodes(withAttrs(node("m", "AddN"), opdef.Attrs{"N": int64(0), "T": tensor.Float32})),
			"Value for attr 'N' of 0 must be at least minimum 1\n\t; NodeDef: {{node m}}; Op<name=AddN; signature=inputs:N*T -> sum:T; attr=N:int,min=1; attr=T:type>"},
		{"too large", nodes(withAttrs(node("m", "AddN"), opdef.Attrs{"N": int64(1e12), "T": tensor.Float32})),
			"AddN: Number of outputs is too big: 1000000000000\n\t [[{{node m}}]]"},
		{"too few inputs", nodes(node("m", "Identity")),
			"NodeDef expected inputs 'float' do not match 0 inputs specified; Op<name=Identity; signature=input:T -> output:T; attr=T:type>; NodeDef: {{node m}}"},
		{"too many inputs", nodes(constant("a"), node("m", "Identity", "a", "a")),
			"Input 1 of node m does not exist. Node only has 1 inputs."},
		{"data after control", nodes(constant("a"), node("m", "Identity", "^a", "a")),
			"All control inputs must follow all data inputs\n\t [[{{node m}}]]"},
		{"no such output", nodes(constant("a"), node("b", "Identity", "a:1")),
			"Node 'b': Connecting to invalid output 1 of source node a which has 1 outputs. Try using tf.compat.v1.experimental.output_all_intermediates(True)."},
		{"negative output", nodes(constant("a"), node("b", "Identity", "a:-1")), "Illegal op input name 'a:-1'\n\t [[{{node b}}]]"},
		{"output too large", nodes(constant("a"), node("b", "Identity", "a:99999999999")), "Illegal op input name 'a:99999999999'\n\t [[{{node b}}]]"},
		{"leading zero", nodes(constant("a"), node("b", "Identity", "a:01")), "Illegal op input name 'a:01'\n\t [[{{node b}}]]"},
		{"illegal input", nodes(constant("a"), node("b", "Identity", "a b!")), "Illegal op input name 'a b!'\n\t [[{{node b}}]]"},
		{"empty input", nodes(constant("a"), node("b", "Identity", "")), "Illegal op input name ''\n\t [[{{node b}}]]"},
		{"empty control input", nodes(constant("a"), node("b", "Identity", "^")), "Illegal op input name '^'\n\t [[{{node b}}]]"},
		{"input of the runtime", nodes(constant("a"), node("b", "Identity", "_a")), "Illegal op input name '_a'\n\t [[{{node b}}]]"},
		{"control input with output", nodes(constant("a"), node("b", "NoOp", "^a:0")), "Illegal op input name '^a:0'\n\t [[{{node b}}]]"},
		{"type of an input", nodes(constant("a"), withAttrs(node("b", "Identity", "a"), opdef.Attrs{"T": tensor.Int32})),
			"Input 0 of node b was passed float from a:0 incompatible with expected int32."},
		{"value for a reference input", nodes(constant("a"), node("b", "Assign", "a", "a")),
			"Input 0 of node b was passed float from a:0 incompatible with expected float_ref."},
	}
	ops := testOps(t)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := graph.Import(&graph.Def{Nodes: test.nodes}, ops, graph.ImportOptions{})
			if err == nil || err.Error() != test.want {
				t.Fatalf("got  %v\nwant %s", err, test.want)
			}
			want := status.InvalidArgument
			if test.name == "unknown operation" {
				want = status.NotFound
			}
			if code := status.CodeOf(err); code != want {
				t.Errorf("code is %v", code)
			}
		})
	}
}

func TestImportVersions(t *testing.T) {
	tests := []struct {
		v    graph.Versions
		want string
	}{
		{graph.Versions{Producer: 99999}, ""},
		{graph.Versions{Producer: -1}, "GraphDef producer version -1 below min producer 0 supported by TensorFlow 2.21.0.  Please regenerate your graph."},
		{graph.Versions{Producer: 2000, MinConsumer: 999999}, "GraphDef min consumer version 999999 above current version 2474 for TensorFlow 2.21.0.  Please upgrade TensorFlow."},
		{graph.Versions{Producer: 2000, BadConsumers: []int{2473, 2474}}, "GraphDef disallows consumer version 2474.  Please upgrade TensorFlow: this version is likely buggy."},
	}
	for _, test := range tests {
		_, err := graph.Import(&graph.Def{Versions: test.v}, testOps(t), graph.ImportOptions{})
		if got := fmt.Sprint(err); got != test.want && (test.want != "" || err != nil) {
			t.Errorf("%+v: got %v, want %v", test.v, got, test.want)
		}
	}
}

func TestNames(t *testing.T) {
	for name, legal := range map[string]bool{
		"a": true, "A9": true, ".a": true, "0": true, "a/b/../c": true, "a-b_c": true, "a>b": true, "a>.b>0": true, "_a": true,
		"": false, "-a": false, "/a": false, "a:0": false, "a b": false, `a\b`: false, "a>": false, "a>_b": false, ">a": false,
		"^a": false, "ä": false, "_": true,
	} {
		if got := graph.LegalName(name); got != legal {
			t.Errorf("LegalName(%q) = %v", name, got)
		}
	}
}

// The stack that a name takes must not grow with its length.
func TestLongName(t *testing.T) {
	defer debug.SetMaxStack(debug.SetMaxStack(1 << 20))
	name := "a" + strings.Repeat(">a", 1<<17)
	if !graph.LegalName(name) || graph.LegalName(name+">") {
		t.Error("a long name is not checked to its end")
	}
}

func TestParseInput(t *testing.T) {
	for _, test := range []struct {
		input, name string
		index       int
	}{{"a", "a", 0}, {"a:3", "a", 3}, {"^a", "a", graph.Control}, {"a:x", "a:x", 0}, {"a:4294967296", "a:4294967296", 0}} {
		if name, index := graph.ParseInput(test.input); name != test.name || index != test.index {
			t.Errorf("%s: got %s, %d", test.input, name, index)
		}
	}
}

// loop is a while loop with nodes around it, in topological order except for the back edge.
const loop = `
a = Const() value=int32[]{0}
ten = Const() value=int32[]{10}
enter = Enter(a) T=int32 frame_name="f"
limit = Enter(ten) T=int32 frame_name="f"
merge = Merge(enter, next) N=2 T=int32
less = Less(merge, limit) T=int32
cond = LoopCond(less)
switch = Switch(merge, cond) T=int32
body = Identity(switch:1) T=int32
one = Const(^body) value=int32[]{1}
add = Add(body, one) T=int32
next = NextIteration(add) T=int32
exit = Exit(switch) T=int32
done = NoOp(^exit, ^a)
v = VariableV2() dtype=int32 shape=[] device=/job:ps
set = Assign(v, exit) T=int32
read = Identity(v) T=int32
`

// TestImportInAnyOrder checks that the order of nodes in a definition does not affect edges.
func TestImportInAnyOrder(t *testing.T) {
	ops := testOps(t)
	g, err := graphtext.Parse(ops, loop)
	if err != nil {
		t.Fatal(err)
	}
	def := g.Def()
	want := sortedLines(g.Summary())
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		rnd.Shuffle(len(def.Nodes), func(i, j int) { def.Nodes[i], def.Nodes[j] = def.Nodes[j], def.Nodes[i] })
		got, err := graph.Import(def, ops, graph.ImportOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if lines := sortedLines(got.Summary()); !slices.Equal(lines, want) {
			t.Fatalf("got %q\nwant %q", lines, want)
		}
		checkOrder(t, got)
		checkEdges(t, got)
	}
}

func sortedLines(s string) []string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	slices.Sort(lines)
	return lines
}

// checkOrder checks that InOrder returns each node once, after its inputs.
func checkOrder(t *testing.T, g *graph.Graph) {
	t.Helper()
	order, err := g.InOrder()
	if err != nil {
		t.Fatal(err)
	}
	if len(order) != g.NumNodes() {
		t.Fatalf("%d of %d nodes are in order", len(order), g.NumNodes())
	}
	position := map[*graph.Node]int{}
	for i, n := range order {
		position[n] = i
	}
	for _, n := range order {
		for _, e := range n.OutEdges() {
			if position[e.Src] >= position[e.Dst] && !e.IsBackEdge() {
				t.Errorf("%s comes before its input %s", e.Dst.Name, e.Src.Name)
			}
		}
	}
}

// checkEdges checks that inputs and out-edges are consistent.
func checkEdges(t *testing.T, g *graph.Graph) {
	t.Helper()
	edges := map[graph.Edge]int{}
	for n := range g.Nodes() {
		if g.Node(n.Name) != n || g.NodeByID(n.ID) != n {
			t.Errorf("%s cannot be found by name and ID", n.Name)
		}
		for i, in := range n.Inputs() {
			if in.Node != nil {
				edges[graph.Edge{Src: in.Node, SrcOut: in.Index, Dst: n, DstIn: i}]++
			}
		}
		for _, src := range n.ControlInputs() {
			edges[graph.Edge{Src: src, SrcOut: graph.Control, Dst: n, DstIn: graph.Control}]++
		}
	}
	for n := range g.Nodes() {
		for _, e := range n.OutEdges() {
			edges[e]--
		}
	}
	for e, count := range edges {
		if count != 0 {
			t.Errorf("edge %s:%d -> %s:%d is inconsistent at its ends", e.Src.Name, e.SrcOut, e.Dst.Name, e.DstIn)
		}
	}
}

func TestExtend(t *testing.T) {
	ops := testOps(t)
	g, err := graph.Import(&graph.Def{
		Nodes: []graph.NodeDef{constant("a")}, Versions: graph.Versions{Producer: 10, MinConsumer: 2, BadConsumers: []int{1}},
	}, ops, graph.ImportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	more := &graph.Def{
		Nodes:    []graph.NodeDef{node("c", "Add", "b", "a", "^a"), node("b", "Identity", "a")},
		Versions: graph.Versions{Producer: 20, MinConsumer: 1, BadConsumers: []int{7, 1}},
	}
	if err := g.Extend(more); err != nil {
		t.Fatal(err)
	}
	const want = "versions producer=20 min_consumer=2 bad_consumers=[1, 7]\n" +
		"a = Const() value=float[]{1}\nc = Add(b, a, ^a)\nb = Identity(a)\n"
	if got := graphtext.Print(g); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	checkEdges(t, g)
}

// TestExtendIsAllOrNothing extends a graph by definitions whose last part is invalid.
func TestExtendIsAllOrNothing(t *testing.T) {
	ops := testOps(t)
	g, err := graph.Import(&graph.Def{Nodes: []graph.NodeDef{constant("a"), node("b", "Identity", "a")}}, ops, graph.ImportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	before := graphtext.Print(g)
	fn := graph.FunctionDef{Signature: opdef.Op{Name: "F"}}
	for _, test := range []struct {
		name string
		bad  graph.NodeDef
		want string
	}{
		{"repeated", node("b", "Identity", "c"), "GraphDef argument to Extend includes node 'b', which was created by a previous " +
			"call to Create or Extend in this session."},
		{"cycle", node("d", "Identity", "d"), "1 nodes in a cycle\n\t [[{{node d}}]]"},
		{"input", node("d", "Identity", "e"), "Node 'd': Unknown input node 'e'"},
	} {
		def := &graph.Def{
			Nodes: []graph.NodeDef{constant("c"), node("x", "Add", "a", "b", "^a"), test.bad}, Library: []graph.FunctionDef{fn},
			Versions: graph.Versions{Producer: 5},
		}
		if err := g.Extend(def); err == nil || err.Error() != test.want {
			t.Errorf("%s: got %v", test.name, err)
		}
		if got := graphtext.Print(g); got != before {
			t.Errorf("%s: the graph is now\n%s", test.name, got)
		}
		if len(g.Node("a").OutEdges()) != 1 || g.Node("c") != nil || len(g.Library.Names()) != 0 {
			t.Errorf("%s: part of the definition was added", test.name)
		}
	}
}

func TestImportAcceptsRuntimeNames(t *testing.T) {
	def := &graph.Def{Nodes: []graph.NodeDef{constant("_recv_x_0"), node("b", "Identity", "_recv_x_0")}}
	if _, err := graph.Import(def, testOps(t), graph.ImportOptions{Internal: true}); err != nil {
		t.Error(err)
	}
}

// TestUnknownAttributesPass checks that, as in TensorFlow, unknown attributes are accepted: a newer
// client may have set them.
func TestUnknownAttributesPass(t *testing.T) {
	attrs := opdef.Attrs{"dtype": tensor.Int32, "foo": int64(1), "_bar": true}
	g, err := graph.Import(&graph.Def{Nodes: placeholder(attrs)}, testOps(t), graph.ImportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := g.Node("a").Attrs.Format(); got != "_bar=true, dtype=DT_INT32, foo=1, shape=<unknown>" {
		t.Errorf("attributes are %s", got)
	}
}
