package graph_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

func mustAdd(t testing.TB, g *graph.Graph, name, op string, attrs opdef.Attrs) *graph.Node {
	t.Helper()
	n, err := g.Add(name, op, attrs)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestEdgesAtRandom adds and removes random edges between few nodes, so that both lists with and
// without an index occur.
func TestEdgesAtRandom(t *testing.T) {
	g := graph.New(testOps(t))
	rnd := rand.New(rand.NewPCG(3, 4))
	var nodes []*graph.Node
	for i := range 150 {
		nodes = append(nodes, mustAdd(t, g, fmt.Sprintf("n%d", i), "Add", opdef.Attrs{"T": tensor.Float32}))
	}
	pick := func() *graph.Node { return nodes[rnd.IntN(len(nodes))] }
	hub := nodes[0]
	for i := range 5000 {
		switch rnd.IntN(12) {
		case 0, 1, 2:
			if err := g.Connect(hub.Out(0), pick(), rnd.IntN(2)); err != nil {
				t.Fatal(err)
			}
		case 3:
			if err := g.Connect(pick().Out(0), pick(), rnd.IntN(2)); err != nil {
				t.Fatal(err)
			}
		case 4, 5:
			g.ConnectControl(hub, pick())
		case 6, 7:
			g.ConnectControl(pick(), hub)
		case 8:
			g.DisconnectControl(hub, pick())
		case 9:
			g.DisconnectControl(pick(), hub)
		case 10:
			g.Disconnect(pick(), rnd.IntN(2))
		case 11:
			if i%50 == 0 {
				at := 1 + rnd.IntN(len(nodes)-1)
				g.Remove(nodes[at])
				nodes[at] = mustAdd(t, g, fmt.Sprintf("m%d", i), "Add", opdef.Attrs{"T": tensor.Float32})
			}
		}
		if i%500 == 0 {
			checkEdges(t, g)
		}
	}
	checkEdges(t, g)
	checkEdges(t, g.Copy())
	g.Remove(hub)
	checkEdges(t, g)
}

func TestCopyIf(t *testing.T) {
	g := graph.New(testOps(t))
	f32 := opdef.Attrs{"T": tensor.Float32}
	a, b, c := mustAdd(t, g, "a", "Add", f32), mustAdd(t, g, "b", "Add", f32), mustAdd(t, g, "c", "Add", f32)
	for i, src := range []*graph.Node{a, b} {
		if err := g.Connect(src.Out(0), c, i); err != nil {
			t.Fatal(err)
		}
		g.ConnectControl(src, c)
	}
	g.Remove(a)
	got := g.CopyIf(func(n *graph.Node) bool { return true })
	checkEdges(t, got)
	if n := got.Node("c"); n.ID != 1 || n.Input(0).Node != nil || n.Input(1).Node != got.Node("b") || len(n.ControlInputs()) != 1 {
		t.Errorf("c is %s", n.Summary())
	}
	if got.Node("b") == b {
		t.Error("the node is not a copy")
	}
}

// TestLargeGraph imports, extends, copies and empties a graph in which one node has all others as
// consumers, and another has all others as control inputs. With an operation of quadratic time the
// test would not finish.
func TestLargeGraph(t *testing.T) {
	const n = 50_000
	def := &graph.Def{Nodes: []graph.NodeDef{constant("c")}}
	all := graph.NodeDef{Name: "all", Op: "NoOp"}
	attrs := opdef.Attrs{"T": tensor.Float32}
	last := "c"
	for i := range n {
		name := fmt.Sprintf("n%d", i)
		def.Nodes = append(def.Nodes, graph.NodeDef{Name: name, Op: "Add", Inputs: []string{"c", last}, Attrs: attrs})
		all.Inputs = append(all.Inputs, "^"+name)
		last = name
	}
	def.Nodes = append(def.Nodes, all)
	g, err := graph.Import(def, testOps(t), graph.ImportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Extend(&graph.Def{Nodes: []graph.NodeDef{node("more", "Identity", last)}}); err != nil {
		t.Fatal(err)
	}
	g = g.Copy()
	hub, wait := g.Node("c"), g.Node("all")
	for i := range n {
		m := g.Node(fmt.Sprintf("n%d", i))
		g.ConnectControl(hub, m)
		g.ConnectControl(m, wait)
		if i%2 == 0 {
			g.Remove(m)
		}
	}
	checkEdges(t, g)
	if got := len(wait.ControlInputs()); got != n/2 {
		t.Errorf("%d control inputs remain", got)
	}
}
