package partition

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// references returns a graph with a node on b whose first inputs are references to a variable on a,
// and whose other inputs are nodes on b.
func references(t *testing.T, variable string, refs, others int) *graph.Graph {
	t.Helper()
	g := graph.New(testOps(t))
	add := func(name, op string, attrs opdef.Attrs) *graph.Node {
		n, err := g.Add(name, op, attrs)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	v := add(variable, "VariableV2", opdef.Attrs{"shape": tensor.MakePartial(), "dtype": tensor.Float32})
	types := slices.Repeat([]tensor.DType{tensor.Float32}, refs+others)
	n := add("b", "PartitionedCall", opdef.Attrs{"Tin": types, "Tout": []tensor.DType{}, "f": opdef.Func{Name: "F"}})
	for i := range refs + others {
		src := v
		if i >= refs {
			src = add(fmt.Sprint("b", i), "FloatInput", nil)
		}
		if err := g.Connect(src.Out(0), n, i); err != nil {
			t.Fatal(err)
		}
	}
	onDevices(g)
	return g
}

func split(g *graph.Graph) (map[string]*graph.Graph, error) {
	return Split(g, Options{Location: byDevice, NewName: namer("_S"), Incarnation: incarnation, ControlFlow: true})
}

// The nodes of transfers have the name of their source, and ask for their memory.
func TestLongNamesAskForMemory(t *testing.T) {
	g := references(t, "a"+strings.Repeat("x", 1<<20), 500, 0)
	membudget.SetLimit(256 << 20)
	defer membudget.SetLimit(0)
	if _, err := split(g); status.CodeOf(err) != status.ResourceExhausted {
		t.Errorf("got %v", err)
	}
}

// The edges from all other inputs to all receives of references are not as many as their product.
func TestManyReferences(t *testing.T) {
	parts, err := split(references(t, "a", 1000, 1000))
	if err != nil {
		t.Fatal(err)
	}
	edges, waiting := 0, 0
	for _, part := range parts {
		for n := range part.Nodes() {
			edges += len(n.OutEdges())
			if n.Op.Name == "_Recv" && len(n.ControlInputs()) == 1 && len(n.ControlInputs()[0].ControlInputs()) == 1000 {
				waiting++
			}
		}
	}
	if edges > 10_000 || waiting != 1000 {
		t.Errorf("%d edges, %d receives wait for all other inputs", edges, waiting)
	}
}
