package optimize

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/test/graphtext"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

func testOps(t testing.TB) graphtext.Ops {
	t.Helper()
	ops, err := graphtext.ParseOps(`
		Const() -> (output: dtype) [value: tensor; dtype: type]
		Placeholder() -> (output: dtype) [dtype: type; shape: shape = <unknown>]
		NoOp()
		Identity(input: T) -> (output: T) [T: type]
		IdentityN(input: T) -> (output: T) [T: list(type) >= 1]
		Add(x: T, y: T) -> (z: T) [T: type] commutative
		Sub(x: T, y: T) -> (z: T) [T: type]
		Neg(x: T) -> (y: T) [T: type]
		Fill(dims: int32, value: T) -> (output: T) [T: type]
		Where(input: T) -> (index: int64) [T: type]
		Split(x: T) -> (y: num * T) [num: int >= 1; T: type]
		Shape(input: T) -> (output: out_type) [T: type; out_type: {int32, int64} = int32]
		ShapeN(input: N * T) -> (output: N * out_type) [N: int >= 1; T: type; out_type: {int32, int64} = int32]
		Size(input: T) -> (output: out_type) [T: type; out_type: {int32, int64} = int32]
		Rank(input: T) -> (output: int32) [T: type]
		Switch(data: T, pred: bool) -> (output_false: T, output_true: T) [T: type]
		Merge(inputs: N * T) -> (output: T, value_index: int32) [T: type; N: int >= 1]
		Enter(data: T) -> (output: T) [T: type; frame_name: string; is_constant: bool = false; parallel_iterations: int = 10]
		Exit(data: T) -> (output: T) [T: type]
		NextIteration(data: T) -> (output: T) [T: type]
		LoopCond(input: bool) -> (output: bool)
		Less(x: T, y: T) -> (z: bool) [T: type]
		VariableV2() -> (ref: Ref(dtype)) [shape: shape; dtype: type] stateful
		Assign(ref: Ref(T), value: T) -> (output_ref: Ref(T)) [T: type]
		VarHandleOp() -> (resource: resource) [shape: shape; dtype: type] stateful
		ReadVariableOp(resource: resource) -> (value: dtype) [dtype: type] stateful
		RandomUniform(shape: T) -> (output: dtype) [T: type; dtype: type; seed: int = 0] stateful
		Call(args: Tin) -> (output: Tout) [Tin: list(type) >= 0; Tout: list(type) >= 0; f: func]
		TestInput() -> (a: float, b: float)
		TestMul(a: float, b: float) -> (o: float)
		TestRelu(i: float) -> (o: float)
		TestFail(i: float) -> (o: float)
		_Send(tensor: T) [T: type; tensor_name: string; send_device: string; send_device_incarnation: int; recv_device: string; client_terminated: bool = false] stateful
		_Recv() -> (tensor: tensor_type) [tensor_type: type; tensor_name: string; send_device: string; send_device_incarnation: int; recv_device: string; client_terminated: bool = false] stateful distributed
		_Arg() -> (output: T) [T: type; index: int >= 0] stateful
		_Retval(input: T) [T: type; index: int >= 0] stateful
	`)
	if err != nil {
		t.Fatal(err)
	}
	for name, shape := range map[string]opdef.ShapeFn{
		"Add": opdef.BroadcastShape, "Sub": opdef.BroadcastShape, "Less": opdef.BroadcastShape, "Neg": opdef.SameShape,
		"Identity": opdef.SameShape, "Split": opdef.SameShape, "TestFail": opdef.SameShape, "Where": opdef.UnknownShape, "Fill": opdef.ValueShape(0),
	} {
		ops[name].Shape = shape
	}
	return ops
}

// eval computes the operations above only.
func eval(n *graph.Node, in []tensor.Tensor) ([]tensor.Tensor, error) {
	switch n.Op.Name {
	case "Identity":
		return []tensor.Tensor{in[0].Retain()}, nil
	case "Split":
		out := make([]tensor.Tensor, len(n.OutTypes))
		for i := range out {
			out[i] = in[0].Retain()
		}
		return out, nil
	case "Where":
		return []tensor.Tensor{tensor.Vector[int64](1)}, nil
	case "Fill":
		shape := opdef.IntValues(&in[0])
		out, err := tensor.Zeros(in[1].DType(), shape)
		return []tensor.Tensor{out}, err
	}
	if in[0].DType() == tensor.Int32 {
		return each[int32](n, in)
	}
	return each[float32](n, in)
}

func each[T int32 | float32](n *graph.Node, in []tensor.Tensor) ([]tensor.Tensor, error) {
	out, err := in[0].Clone()
	if err != nil {
		return nil, err
	}
	vals := tensor.Values[T](&out)
	for i := range vals {
		switch n.Op.Name {
		case "Neg":
			vals[i] = -vals[i]
		case "Add":
			vals[i] += tensor.Values[T](&in[1])[i]
		case "Sub":
			vals[i] -= tensor.Values[T](&in[1])[i]
		default:
			return nil, fmt.Errorf("no kernel for %s", n.Op.Name)
		}
	}
	return []tensor.Tensor{out}, nil
}

func TestScripts(t *testing.T) {
	ops := testOps(t)
	graphtext.RunScripts(t, "testdata/*.txt", func(t *testing.T, c *graphtext.Case) string {
		g, err := graphtext.Parse(ops, c.Input)
		if err != nil {
			t.Fatal(err)
		}
		before := graphtext.Print(g)
		switch c.Command {
		case "prune":
			out := prune(g, c)
			if after := graphtext.Print(g); after != before {
				t.Errorf("the graph was changed to\n%s", after)
			}
			return out
		case "optimize":
			o := Options{Eval: eval, Shape: declaredShape}
			if only := c.Args("only"); only != nil {
				for _, p := range passes {
					if !slices.Contains(only, p.name) {
						o.Without = append(o.Without, p.name)
					}
				}
			}
			if err := Optimize(g, o); err != nil {
				return "error: " + err.Error()
			}
			return graphtext.Print(g)
		}
		t.Fatalf("unknown command %s", c.Command)
		return ""
	})
}

func prune(g *graph.Graph, c *graphtext.Case) string {
	const device = "/job:a/replica:0/task:0/device:CPU:0"
	var b Boundary = Session{Device: device, Incarnation: 1 << 63}
	if c.Has("function") {
		b = Function{Device: device}
	}
	p, err := Prune(g, Endpoints{Feeds: c.Args("feeds"), Fetches: c.Args("fetches"), Targets: c.Args("targets")}, b)
	if err != nil {
		return "error: " + err.Error()
	}
	var out strings.Builder
	describe := func(what string, nodes []*graph.Node, types []tensor.DType) {
		for i, n := range nodes {
			name := "unused"
			if n != nil {
				name = n.Name
			}
			fmt.Fprintf(&out, "# %s %d: %v %s\n", what, i, types[i], name)
		}
	}
	text := graphtext.Print(p.Graph)
	if c.Has("terse") { // print names and inputs only
		lines := strings.Split(strings.TrimSpace(text), "\n")
		for i, l := range lines {
			lines[i] = l[:strings.Index(l, ")")+1]
		}
		return strings.Join(lines, "\n")
	}
	describe("feed", p.Feeds, p.FeedTypes)
	describe("fetch", p.Fetches, p.FetchTypes)
	return out.String() + text
}

// declaredShape returns the shape in the attribute _shape of the node.
func declaredShape(o graph.Output) tensor.PartialShape { return o.Node.Attrs.Shape("_shape") }

func TestPassesAreInOrder(t *testing.T) {
	var done []string
	for _, p := range passes {
		for _, before := range p.after {
			if !slices.Contains(done, before) {
				t.Errorf("%s runs before %s", p.name, before)
			}
		}
		done = append(done, p.name)
	}
}

func TestFoldingIsBounded(t *testing.T) {
	ops := testOps(t)
	for _, tt := range []struct {
		name, text string
		folded     bool
	}{
		{"small", "d = Const() value=int32[1]{25600}\nv = Const() value=float[]{0}\nf = Fill(d, v)\nn = NoOp(^f)\nr = Neg(f)", true},
		{"larger than its inputs", "d = Const() value=int32[1]{25601}\nv = Const() value=float[]{0}\nf = Fill(d, v)\nr = Neg(f)", false},
		{"as large as its inputs", "v = Const() value=float[100000]{1...}\nf = Neg(v)\nr = Neg(f)", true},
		{"too large", "v = Const() value=float[2621441]{1...}\nf = Neg(v)\nr = Neg(f)", false},
		{"overflowing", "d = Const() value=int32[3]{2147483647, 2147483647, 2147483647}\nv = Const() value=float[]{0}\nf = Fill(d, v)\nr = Neg(f)", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g, err := graphtext.Parse(ops, tt.text)
			if err != nil {
				t.Fatal(err)
			}
			if err := Optimize(g, Options{Eval: eval}); err != nil {
				t.Fatal(err)
			}
			if folded := g.Node("f") == nil; folded != tt.folded {
				t.Errorf("folded: %v, want %v", folded, tt.folded)
			}
		})
	}
}

func TestFoldingHasATotalBound(t *testing.T) {
	var text strings.Builder
	text.WriteString("v = Const() value=float[2621440]{1...}\n")
	const n = 20 // constants of 10 MiB each
	for i := range n {
		fmt.Fprintf(&text, "f%d = Neg(v)\nr%d = TestRelu(f%d)\n", i, i, i)
	}
	g, err := graphtext.Parse(testOps(t), text.String())
	if err != nil {
		t.Fatal(err)
	}
	if err := Optimize(g, Options{Eval: eval, Without: []string{"subexpressions"}}); err != nil {
		t.Fatal(err)
	}
	left := 0
	for i := range n {
		if g.Node(fmt.Sprintf("f%d", i)) != nil {
			left++
		}
	}
	if want := n - maxFolded/maxConstant; left != want {
		t.Errorf("%d nodes left, want %d", left, want)
	}
}

// The passes take a time that grows with the nodes, also where many nodes share a predicate or
// differ in an attribute only.
func TestManyAlikeNodes(t *testing.T) {
	const n = 15_000 // the time would be minutes with 100,000 if it grew with their square
	var switches, classes strings.Builder
	switches.WriteString("x = Placeholder() dtype=float\nk = Const() value=bool[]{true}\ns0 = Switch(x, k)\n")
	classes.WriteString("y = NoOp(")
	for i := range n {
		fmt.Fprintf(&switches, "s%d = Switch(s%d:1, k)\n", i+1, i)
		if i > 0 {
			classes.WriteString(", ")
		}
		fmt.Fprintf(&classes, "^n%d", i)
	}
	fmt.Fprintf(&switches, "y = Identity(s%d:1)\n", n)
	classes.WriteString(")\n")
	lists := classes.String()
	for i := range n {
		fmt.Fprintf(&classes, "n%d = NoOp() _class=[\"loc:@n%d\"]\n", i, i+1)
		lists += fmt.Sprintf("n%d = NoOp() _other=[%d.5]\n", i, i)
	}
	for name, text := range map[string]string{"switches": switches.String(), "classes": classes.String(), "other attributes": lists} {
		g, err := graphtext.Parse(testOps(t), text)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		before := g.NumNodes()
		if err := Optimize(g, Options{}); err != nil || g.NumNodes() != before {
			t.Errorf("%s: %d of %d nodes, %v", name, g.NumNodes(), before, err)
		}
	}
}

// Nodes inherit the control dependences of the constants that they are computed from. A row of them
// does not hold the square of the graph's size.
func TestFoldingBoundsDependences(t *testing.T) {
	const deps, row = 3000, 3000
	var text strings.Builder
	for i := range deps {
		fmt.Fprintf(&text, "n%d = NoOp()\n", i)
	}
	text.WriteString("f0 = Const(")
	for i := range deps {
		if i > 0 {
			text.WriteString(", ")
		}
		fmt.Fprintf(&text, "^n%d", i)
	}
	text.WriteString(") value=float[]{1}\n")
	for i := range row {
		fmt.Fprintf(&text, "f%d = Neg(f%d)\n", i+1, i)
	}
	fmt.Fprintf(&text, "r = TestRelu(f%d)\n", row)
	g, err := graphtext.Parse(testOps(t), text.String())
	if err != nil {
		t.Fatal(err)
	}
	if err := foldConstants(g, &Options{Eval: eval}); err != nil {
		t.Fatal(err)
	}
	if g.Node("f1") != nil || g.Node(fmt.Sprintf("f%d", row)) == nil {
		t.Error("want the first nodes to be folded, but not all")
	}
}

// A branch that stays is followed from each Switch that leads to it, and one node of it may have as
// many consumers as the graph has inputs. Beyond a limit, branches are not followed.
func TestFollowedBranchesAreBounded(t *testing.T) {
	const switches, consumers = 10, 1000
	defer func(n int) { maxFollowed = n }(maxFollowed)
	var text strings.Builder
	text.WriteString("x = Placeholder() dtype=float\nk = Const() value=bool[]{true}\n")
	all := []string{}
	for i := range switches {
		fmt.Fprintf(&text, "s%d = Switch(x, k)\n", i)
		all = append(all, fmt.Sprintf("s%d:0", i))
	}
	text.WriteString("shared = IdentityN(" + strings.Join(all, ", ") + ")\n")
	text.WriteString("m = Merge(" + strings.Repeat("shared:0, ", consumers) + "x, x)\nr = TestRelu(m)\n")
	text.WriteString("z = Switch(x, k)\ndead = TestRelu(z:0)\nmz = Merge(dead, x)\nrz = TestRelu(mz)\n")
	for _, limit := range []int{maxFollowed, 2 * consumers} {
		g, err := graphtext.Parse(testOps(t), text.String())
		if err != nil {
			t.Fatal(err)
		}
		maxFollowed = limit
		if err := dropBranches(g, &Options{}); err != nil {
			t.Fatal(err)
		}
		if left, want := g.Node("dead") != nil, limit == 2*consumers; left != want {
			t.Errorf("a limit of %d: the dead node is left: %v", limit, left)
		}
	}
}

// Each constant for an output of ShapeN waits for all inputs: not beyond a limit.
func TestFoldedShapesAreBounded(t *testing.T) {
	for n, folded := range map[int]bool{10: true, 2000: false} {
		var text strings.Builder
		for i := range n {
			fmt.Fprintf(&text, "p%d = Placeholder() dtype=float\n", i)
		}
		g, err := graphtext.Parse(testOps(t), text.String())
		if err != nil {
			t.Fatal(err)
		}
		s, err := g.Add("s", "ShapeN", opdef.Attrs{"N": int64(n), "T": tensor.Float32})
		if err != nil {
			t.Fatal(err)
		}
		for i := range n {
			if err := g.Connect(g.Node(fmt.Sprint("p", i)).Out(0), s, i); err != nil {
				t.Fatal(err)
			}
		}
		r, err := g.Add("r", "Identity", opdef.Attrs{"T": tensor.Int32})
		if err == nil {
			err = g.Connect(s.Out(0), r, 0)
		}
		if err == nil {
			err = foldShapes(g, &Options{Shape: func(graph.Output) tensor.PartialShape { return tensor.MakePartial(2) }})
		}
		if err != nil || (g.Node("s") == nil) != folded {
			t.Errorf("%d inputs: folded: %v, %v", n, g.Node("s") == nil, err)
		}
	}
}

// A tensor whose memory many nodes share is hashed once.
func TestSharedTensorIsHashedOnce(t *testing.T) {
	value, err := tensor.FromSlice(tensor.Shape{16 << 20}, make([]float32, 16<<20))
	if err != nil {
		t.Fatal(err)
	}
	g := graph.New(testOps(t))
	for i := range 500 {
		// The attribute keeps them apart.
		if _, err := g.Add(fmt.Sprint("c", i), "Const", opdef.Attrs{"value": value, "dtype": tensor.Float32, "_i": int64(i)}); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	if err := mergeSubexpressions(g, nil); err != nil || g.NumNodes() != 500 {
		t.Errorf("%d nodes, %v", g.NumNodes(), err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("took %v", took)
	}
}

// So is a text.
func TestSharedTextIsHashedOnce(t *testing.T) {
	text := strings.Repeat("x", 16<<20)
	g := graph.New(testOps(t))
	for i := range 1000 {
		if _, err := g.Add(fmt.Sprint("n", i), "NoOp", opdef.Attrs{"_text": text, "_list": []string{text}, "_i": int64(i)}); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	if err := mergeSubexpressions(g, nil); err != nil || g.NumNodes() != 1000 {
		t.Errorf("%d nodes, %v", g.NumNodes(), err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("took %v", took)
	}
}

// A step may feed each output of a node with many. The time grows with their number.
func TestManyFeedsOfOneNode(t *testing.T) {
	const n = 20_000
	def := &graph.Def{Nodes: []graph.NodeDef{
		{Name: "p", Op: "Placeholder", Attrs: opdef.Attrs{"dtype": tensor.Float32}},
		{Name: "s", Op: "Split", Inputs: []string{"p"}, Attrs: opdef.Attrs{"num": int64(n), "T": tensor.Float32}},
		{Name: "a", Op: "IdentityN", Attrs: opdef.Attrs{"T": slices.Repeat([]tensor.DType{tensor.Float32}, n)}},
	}}
	e := Endpoints{Targets: []string{"a"}}
	for i := range n {
		name := fmt.Sprintf("s:%d", i)
		def.Nodes[2].Inputs, e.Feeds = append(def.Nodes[2].Inputs, name), append(e.Feeds, name)
	}
	g, err := graph.Import(def, testOps(t), graph.ImportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	pruned, err := Prune(g, e, Session{Device: "/job:a/replica:0/task:0/device:CPU:0"})
	if err != nil {
		t.Fatal(err)
	}
	for i, in := range pruned.Graph.Node("a").Inputs() {
		if in.Node != pruned.Feeds[i] {
			t.Fatalf("input %d comes from %v", i, in)
		}
	}
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("took %v", took)
	}
}
