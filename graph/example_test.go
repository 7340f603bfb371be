package graph_test

import (
	"fmt"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/opdef"
)

func ExampleImport() {
	ops := opdef.NewTable([]opdef.Def{
		{Name: "One", Out: []string{"y: float32"}},
		{Name: "Twice", In: []string{"x: float32"}, Out: []string{"y: float32"}},
	})
	g, err := graph.Import(&graph.Def{Nodes: []graph.NodeDef{
		{Name: "b", Op: "Twice", Inputs: []string{"a"}},
		{Name: "a", Op: "One"},
	}}, ops, graph.ImportOptions{})
	if err != nil {
		panic(err)
	}
	fmt.Println(g.NumNodes(), g.Node("b").Input(0))
	// Output: 2 a
}
