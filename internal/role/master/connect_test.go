package master

import (
	"fmt"
	"testing"
	"time"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/test/graphtext"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// The time of connections grows with their number, also if they replace the outputs of one node.
func TestManyConnections(t *testing.T) {
	const n = 50_000
	ops, err := graphtext.ParseOps(`
		Placeholder() -> (output: dtype) [dtype: type]
		Split(x: T) -> (y: n * T) [n: int; T: type]
		AddN(inputs: N * T) -> (sum: T) [N: int; T: type]
	`)
	if err != nil {
		t.Fatal(err)
	}
	list := opdef.Attrs{"n": int64(n), "N": int64(n), "T": tensor.Float32}
	def := &graph.Def{Nodes: []graph.NodeDef{
		{Name: "p", Op: "Placeholder", Attrs: opdef.Attrs{"dtype": tensor.Float32}},
		{Name: "s", Op: "Split", Inputs: []string{"p"}, Attrs: list}, {Name: "a", Op: "AddN", Attrs: list},
	}}
	var connections []*pb.TensorConnection
	for i := range n {
		name := fmt.Sprintf("s:%d", i)
		def.Nodes[2].Inputs = append(def.Nodes[2].Inputs, name)
		connections = append(connections, &pb.TensorConnection{FromTensor: "p:0", ToTensor: name})
	}
	g, err := graph.Import(def, ops, graph.ImportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if g, err = connect(g, connections, nil); err != nil {
		t.Fatal(err)
	}
	for i, in := range g.Node("a").Inputs() {
		if in.Node.Name != "p" {
			t.Fatalf("input %d comes from %v", i, in)
		}
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("took %v", took)
	}
	// A connection takes along what an earlier one has connected to its output.
	chain := []*pb.TensorConnection{{FromTensor: "s:1", ToTensor: "s:0"}, {FromTensor: "p:0", ToTensor: "s:1"}}
	if g, err = graph.Import(def, ops, graph.ImportOptions{}); err == nil {
		g, err = connect(g, chain, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		if in := g.Node("a").Input(i); in.Node.Name != "p" {
			t.Errorf("input %d comes from %v", i, in)
		}
	}
}
