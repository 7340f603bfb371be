package function

import (
	"fmt"
	"testing"
	"time"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/test/graphtext"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// All results may come from the same long row of identities.
func TestOriginsOfRow(t *testing.T) {
	const n = 30_000
	ops, err := graphtext.ParseOps(`
		_Arg() -> (output: T) [T: type; index: int]
		Identity(input: T) -> (output: T) [T: type]
		_Retval(input: T) [T: type; index: int]
	`)
	if err != nil {
		t.Fatal(err)
	}
	g := graph.New(ops)
	add := func(name, op string, from *graph.Node) *graph.Node {
		made, err := g.Add(name, op, opdef.Attrs{"T": tensor.Float32, "index": int64(0)})
		if err == nil && from != nil {
			err = g.Connect(from.Out(0), made, 0)
		}
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	arg := add("a", "_Arg", nil)
	arg.Assigned = "/device:CPU:0"
	var rets []*graph.Node
	last := arg
	for i := range n {
		last = add(fmt.Sprint("i", i), "Identity", last)
		rets = append(rets, add(fmt.Sprint("r", i), "_Retval", last))
	}
	began := time.Now()
	found := origins(rets)
	follow(rets, found)
	for i, r := range rets {
		if found[i] != arg || r.Assigned != arg.Assigned || r.Input(0).Node.Assigned != arg.Assigned {
			t.Fatalf("result %d is on %q, and comes from %s", i, r.Assigned, found[i].Name)
		}
	}
	// The row ends at a node with a device, and at one that is not an identity of an argument.
	g.Node("i100").Device = "/device:CPU:1"
	if found = origins(rets); found[99] != arg || found[n-1] != g.Node("i100") {
		t.Errorf("results come from %s and %s", found[99].Name, found[n-1].Name)
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("took %v", took)
	}
}
