package savedmodel_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/savedmodel"
	"github.com/weft-ml/weft/tensor"
)

// List the inputs of the signatures of a model.
func Example() {
	m, err := savedmodel.Open("testdata/lookups")
	if err != nil {
		panic(err)
	}
	g, err := m.MetaGraph(savedmodel.TagServe)
	if err != nil {
		panic(err)
	}
	for _, name := range slices.Sorted(maps.Keys(g.Signatures)) {
		for input, info := range g.Signatures[name].Inputs {
			fmt.Println(name, input, info.DType.Name(), info.Shape)
		}
	}
	// Output:
	// rows ids int64 [?]
	// serving_default x float32 [?,2]
	// words words string [?]
}

// Write a model without variables.
func ExampleCreate() {
	tmp, err := os.MkdirTemp("", "models")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(tmp)

	s := op.NewScope()
	x := op.Placeholder(s.Named("x"), tensor.Float32)
	y := op.Square(s.Named("y"), x)
	graph, err := s.Finalize()
	if err != nil {
		panic(err)
	}
	b, err := savedmodel.Create(filepath.Join(tmp, "square"))
	if err != nil {
		panic(err)
	}
	defer b.Abort()
	info := func(o op.Output) map[string]savedmodel.TensorInfo {
		return map[string]savedmodel.TensorInfo{o.Node.Name: savedmodel.InfoOf(o, tensor.PartialShape{})}
	}
	err = b.Add(&savedmodel.MetaGraph{
		Graph: graph.Def(), Tags: []string{savedmodel.TagServe},
		Signatures: map[string]savedmodel.Signature{
			savedmodel.DefaultSignature: {Inputs: info(x), Outputs: info(y), Method: savedmodel.MethodPredict},
		},
	})
	if err != nil {
		panic(err)
	}
	if err := b.Save(); err != nil {
		panic(err)
	}
	fmt.Println(savedmodel.IsModel(filepath.Join(tmp, "square")))
	// Output: true
}

// Replace a variable by a constant, so that the graph needs no checkpoint.
func ExampleFreeze() {
	s := op.NewScope()
	x := op.Placeholder(s.Named("x"), tensor.Float32)
	w := op.VariableV2(s.Named("w"), tensor.MakePartial(), tensor.Float32)
	op.Mul(s.Named("y"), x, w)
	g, err := s.Finalize()
	if err != nil {
		panic(err)
	}
	frozen, err := savedmodel.Freeze(g.Def(), []string{"y"}, map[string]tensor.Tensor{"w": tensor.Scalar[float32](3)})
	if err != nil {
		panic(err)
	}
	for _, n := range frozen.Nodes {
		fmt.Println(n.Name, n.Op, n.Inputs)
	}
	// Output:
	// x Placeholder []
	// w Const []
	// y Mul [x w]
}

// Copy a MetaGraph without the devices of its nodes.
func ExampleMetaGraph_ClearDevices() {
	s := op.NewScope()
	op.Const(s.WithDevice("/job:ps/task:0").Named("c"), float32(1))
	m := &savedmodel.MetaGraph{Graph: s.Graph().Def()}
	m.ClearDevices()
	b, err := m.Marshal()
	if err != nil {
		panic(err)
	}
	m, err = savedmodel.ParseMetaGraph(b)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s %q\n", m.Graph.Nodes[0].Name, m.Graph.Nodes[0].Device)
	// Output: c ""
}
