package executor

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weft-ml/weft/graph"
	_ "github.com/weft-ml/weft/internal/kernels/control"
	"github.com/weft-ml/weft/kernel"
)

// TestRunOrder creates the nodes of several chains alternately, and one cycle. The nodes of a chain
// must be adjacent, and no node may be missing.
func TestRunOrder(t *testing.T) {
	g := graph.New(kernel.Default)
	const chains, length = 3, 4
	var ends [chains]*graph.Node
	for i := range length {
		for c := range chains {
			n, err := g.Add(fmt.Sprintf("%c%d", 'a'+c, i), "NoOp", nil)
			if err != nil {
				t.Fatal(err)
			}
			if i > 0 {
				g.ConnectControl(ends[c], n)
			}
			ends[c] = n
		}
	}
	for _, name := range []string{"x", "y"} {
		if _, err := g.Add(name, "NoOp", nil); err != nil {
			t.Fatal(err)
		}
	}
	g.ConnectControl(g.Node("x"), g.Node("y"))
	g.ConnectControl(g.Node("y"), g.Node("x"))
	var names []string
	for _, n := range runOrder(g) {
		names = append(names, n.Name)
	}
	if got, want := strings.Join(names, " "), "a0 a1 a2 a3 b0 b1 b2 b3 c0 c1 c2 c3 x y"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
