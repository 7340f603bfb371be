package data

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/graph"
	_ "github.com/weft-ml/weft/internal/kernels/array"
	_ "github.com/weft-ml/weft/internal/kernels/function"
	_ "github.com/weft-ml/weft/internal/kernels/mathops"
	_ "github.com/weft-ml/weft/internal/kernels/random"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/proto/pbconv"
	"github.com/weft-ml/weft/internal/runtime/function"
	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// numbersSpec returns the attributes of datasets of numbers.
func numbersSpec(more opdef.Attrs) opdef.Attrs {
	attrs := opdef.Attrs{"output_types": []tensor.DType{tensor.Int64}, "output_shapes": []tensor.PartialShape{tensor.MakePartial()}}
	maps.Copy(attrs, more)
	return attrs
}

// program is a test graph with one result.
type program struct{ graph.Def }

// add adds a node. By default it is named after its operation.
func (p *program) add(name, op string, attrs opdef.Attrs, in ...string) string {
	p.Nodes = append(p.Nodes, graph.NodeDef{Name: name, Op: op, Inputs: in, Attrs: attrs})
	return name
}

func (p *program) constant(name string, t tensor.Tensor) string {
	return p.add(name, "Const", opdef.Attrs{"dtype": t.DType(), "value": t})
}

// count adds a dataset of the numbers below n.
func (p *program) count(name string, n int64) string {
	return p.add(name, "RangeDataset", numbersSpec(nil), p.constant(name+"/start", num(0)), p.constant(name+"/stop", num(n)), p.constant(name+"/step", num(1)))
}

// function adds a function of a number x that returns op(x, by), or a random number between x and
// by.
func (p *program) function(name, op string, by int64) opdef.Func {
	f := graph.FunctionDef{
		Signature: opdef.Op{Name: name, Inputs: []opdef.Arg{{Name: "x", DType: tensor.Int64}}, Outputs: []opdef.Arg{{Name: "y", DType: tensor.Int64}}},
		Nodes:     []graph.NodeDef{{Name: "c", Op: "Const", Attrs: opdef.Attrs{"dtype": tensor.Int64, "value": num(by)}}},
		Ret:       map[string]string{"y": "z:z:0"},
	}
	z := graph.NodeDef{Name: "z", Op: op, Inputs: []string{"x", "c:output:0"}, Attrs: opdef.Attrs{"T": tensor.Int64}}
	if op == "RandomUniformInt" {
		f.Signature.Stateful = true
		f.Nodes = append(f.Nodes, graph.NodeDef{Name: "shape", Op: "Const", Attrs: opdef.Attrs{"dtype": tensor.Int32, "value": tensor.Vector[int32]()}})
		z.Inputs = []string{"shape:output:0", "x", "c:output:0"}
		z.Attrs = opdef.Attrs{"T": tensor.Int32, "Tout": tensor.Int64}
		f.Ret["y"] = "z:output:0"
	}
	f.Nodes = append(f.Nodes, z)
	p.Library = append(p.Library, f)
	return opdef.Func{Name: name}
}

// run runs the program and returns the output of a node.
func (p *program) run(t *testing.T, out string, dtype tensor.DType) (tensor.Tensor, error) {
	t.Helper()
	def := p.Def
	def.Nodes = append(slices.Clone(def.Nodes), graph.NodeDef{
		Name: "result", Op: "_Retval", Inputs: []string{out}, Attrs: opdef.Attrs{"T": dtype, "index": int64(0)},
	})
	message, err := pbconv.GraphToProto(&def)
	if err != nil {
		t.Fatal(err)
	}
	text, err := proto.Marshal(message)
	if err != nil {
		t.Fatal(err)
	}
	env := kerneltest.NewEnv()
	env.Step.Context = t.Context()
	runtime := function.NewRuntime(graph.New(kernel.Default).Library, function.Config{Device: env.Device})
	defer runtime.Close()
	f, err := runtime.Load(text)
	if err != nil {
		t.Fatal(err)
	}
	type result struct {
		t   tensor.Tensor
		err error
	}
	ended := make(chan result, 1)
	f.Call(&kernel.Context{Step: env.Step, Device: env.Device}, nil, func(rets []tensor.Tensor, err error) {
		if err != nil {
			ended <- result{err: err}
			return
		}
		ended <- result{t: rets[0]}
	})
	got := <-ended
	return got.t, got.err
}

// mapped adds a dataset that applies a function to the numbers 0 to 4.
func (p *program) mapped(op string, by int64) string {
	return p.add("map", "MapDataset", numbersSpec(opdef.Attrs{"f": p.function("f", op, by), "Targuments": []tensor.DType{}}), p.count("numbers", 5))
}

func TestDatasetsAsGraphs(t *testing.T) {
	p := &program{}
	text, err := p.run(t, p.add("text", "DatasetToGraphV2", opdef.Attrs{"external_state_policy": int64(failOnState)}, p.mapped("Mul", 3)), tensor.String)
	if err != nil {
		t.Fatal(err)
	}
	g := &pb.GraphDef{}
	if err := proto.Unmarshal([]byte(tensor.Value[string](&text)), g); err != nil {
		t.Fatal(err)
	}
	var nodes []string
	for _, n := range g.GetNode() {
		nodes = append(nodes, n.GetName()+"("+strings.Join(n.GetInput(), " ")+")")
	}
	want := "Const/_0() Const/_1() Const/_2() RangeDataset/_3(Const/_0 Const/_1 Const/_2) MapDataset/_4(RangeDataset/_3) dataset(MapDataset/_4)"
	if got := strings.Join(nodes, " "); got != want { // names and order of TensorFlow 2.21
		t.Errorf("nodes %s", got)
	}
	if lib := g.GetLibrary().GetFunction(); len(lib) != 1 || lib[0].GetSignature().GetName() != "f" {
		t.Errorf("the library is %v", lib)
	}

	back := &program{} // its function f differs
	d := back.add("loaded", "DatasetFromGraph", nil, back.constant("graph", text))
	all := back.add("all", "BatchDataset", numbersSpec(nil), d, back.constant("five", num(5)))
	back.function("f", "AddV2", 1)
	got, err := back.run(t, back.add("element", "DatasetToSingleElement", opdef.Attrs{
		"output_types": []tensor.DType{tensor.Int64}, "output_shapes": []tensor.PartialShape{tensor.MakePartial(5)},
	}, all), tensor.Int64)
	if err != nil || !slices.Equal(tensor.Values[int64](&got), []int64{0, 3, 6, 9, 12}) {
		t.Errorf("the dataset of the graph has %v, %v", got, err)
	}
}

func TestStatefulGraphs(t *testing.T) {
	for _, c := range []struct {
		op    string
		attrs opdef.Attrs
		fails bool
	}{
		{"DatasetToGraphV2", opdef.Attrs{"external_state_policy": int64(failOnState)}, true},
		{"DatasetToGraphV2", nil, false},
		{"DatasetToGraph", nil, true},
		{"DatasetToGraph", opdef.Attrs{"allow_stateful": true}, false},
	} {
		p := &program{}
		_, err := p.run(t, p.add("text", c.op, c.attrs, p.mapped("RandomUniformInt", 7)), tensor.String)
		if !c.fails && err != nil {
			t.Errorf("%s %v: %v", c.op, c.attrs, err)
		}
		const text = "Failed to serialize the input pipeline graph: RandomUniformInt is stateful."
		if c.fails && (status.CodeOf(err) != status.FailedPrecondition || !strings.Contains(err.Error(), text)) {
			t.Errorf("%s %v: %v", c.op, c.attrs, err)
		}
	}
}

func TestStatePolicy(t *testing.T) {
	// Options with deterministic = true and, before it, external_state_policy = POLICY_FAIL and
	// POLICY_IGNORE.
	if got, ok := statePolicy("\x30\x02\x30\x01\x08\x01"); !ok || got != 1 {
		t.Errorf("the last policy is %d, %t", got, ok)
	}
	if _, ok := statePolicy("\x08\x01"); ok {
		t.Error("want no policy")
	}
}

// TestSaveIteratorWithDatasets saves an iterator while a stage holds windows, and restores it from
// its serialized state.
func TestSaveIteratorWithDatasets(t *testing.T) {
	b := newBench(t)
	window := b.make("WindowDataset", b.count(0, 6), num(2), num(2), num(1), tensor.Scalar(false))
	windowSpec := opdef.Attrs{"output_types": []tensor.DType{tensor.Variant}, "output_shapes": []tensor.PartialShape{tensor.MakePartial()}}
	d, err := b.run("d", "ShuffleDataset", windowSpec, window, num(3), num(3), num(7))
	if err != nil {
		t.Fatal(err)
	}
	made, err := b.run("it", "AnonymousIteratorV3", windowSpec)
	if err == nil {
		_, err = b.run("make", "MakeIterator", nil, d[0], made[0])
	}
	if err != nil {
		t.Fatal(err)
	}
	it := made[0]
	read := func() []int64 {
		t.Helper()
		out, err := b.run("next", "IteratorGetNext", windowSpec, it)
		if err != nil {
			t.Fatal(err)
		}
		return b.take(b.iterator("window", out[0]), -1)
	}
	first := read()
	saved, err := b.run("save", "SerializeIterator", nil, it)
	if err != nil {
		t.Fatal(err)
	}
	message, err := pbconv.TensorToProto(&saved[0])
	if err != nil {
		t.Fatal(err)
	}
	want := [][]int64{read(), read()}
	if slices.Equal(want[0], first) || len(want[1]) != 2 {
		t.Errorf("windows %v, then %v", first, want)
	}
	place, err := pbconv.TensorFromProto(message)
	if err != nil {
		t.Fatal(err)
	}
	runtime := function.NewRuntime(graph.New(kernel.Default).Library, function.Config{Device: b.env.Device})
	defer runtime.Close()
	b.env.Functions = runtime
	if _, err := b.run("restore", "DeserializeIterator", nil, it, place); err != nil {
		t.Fatal(err)
	}
	for _, w := range want {
		if got := read(); !slices.Equal(got, w) {
			t.Errorf("after the place is restored: %v, before %v", got, w)
		}
	}
}

func constantNode(name string, v int64) graph.NodeDef {
	return graph.NodeDef{Name: name, Op: "Const", Attrs: opdef.Attrs{"dtype": tensor.Int64, "value": num(v)}}
}

func rangeNode(name string, in ...string) graph.NodeDef {
	return graph.NodeDef{Name: name, Op: "RangeDataset", Inputs: in, Attrs: numbersSpec(nil)}
}

// TestReplicatedSources rewrites a dataset. Its graph is that of a dataset created with the
// attribute.
func TestReplicatedSources(t *testing.T) {
	p := &program{}
	taken := p.add("taken", "TakeDataset", numbersSpec(nil), p.count("numbers", 5), p.constant("n", num(3)))
	d := p.add("rewritten", "RewriteDataset", numbersSpec(nil), taken, p.constant("name", tensor.Scalar("replicate_on_split")))
	text, err := p.run(t, p.add("text", "DatasetToGraphV2", nil, d), tensor.String)
	if err != nil {
		t.Fatal(err)
	}
	g := &pb.GraphDef{}
	if err := proto.Unmarshal([]byte(tensor.Value[string](&text)), g); err != nil {
		t.Fatal(err)
	}
	var ops []string
	for _, n := range g.GetNode() {
		if n.GetOp() != "Const" {
			ops = append(ops, n.GetOp())
		}
		if n.GetOp() == "RangeDataset" && !n.GetAttr()["replicate_on_split"].GetB() {
			t.Errorf("the source is %v", n)
		}
	}
	if got := strings.Join(ops, " "); got != "RangeDataset TakeDataset _Retval" {
		t.Errorf("operations %s", got)
	}
}
