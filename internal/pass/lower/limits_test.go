package lower_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/pass/lower"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/internal/test/graphtext"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// called returns a graph with a call of a function without arguments and results, and its body.
func called(t *testing.T, name, device string, nodes ...graph.NodeDef) *graph.Graph {
	t.Helper()
	g, err := graph.Import(&graph.Def{
		Library: []graph.FunctionDef{{Signature: opdef.Op{Name: "F"}, Nodes: nodes}},
		Nodes: []graph.NodeDef{{Name: name, Op: "PartitionedCall", Device: device, Attrs: opdef.Attrs{
			"Tin": []tensor.DType{}, "Tout": []tensor.DType{}, "f": opdef.Func{Name: "F"},
		}}},
	}, testOps(t), graph.ImportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// The colocation groups of copies have the name of the call, and ask for their memory.
func TestColocationAsksForMemory(t *testing.T) {
	class := slices.Repeat([]string{"loc:@a"}, 2000)
	g := called(t, strings.Repeat("x", 1<<20), "", graph.NodeDef{Name: "a", Op: "NoOp", Attrs: opdef.Attrs{"_class": class}})
	membudget.SetLimit(256 << 20)
	defer membudget.SetLimit(0)
	n := allocated(func() {
		if err := lower.Lower(g, lower.Options{}); status.CodeOf(err) != status.ResourceExhausted {
			t.Errorf("got %v", err)
		}
	})
	if n > 1<<30 {
		t.Errorf("%d MiB were allocated", n>>20)
	}
}

// allocated returns how many bytes f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// The definition of a node names the source of each input, whose name has that of the call.
func TestInputsOfCopiesAreBounded(t *testing.T) {
	const n = 2000
	list := opdef.Attrs{"T": slices.Repeat([]tensor.DType{tensor.Float32}, n)}
	g := called(t, strings.Repeat("x", 1<<20), "",
		graph.NodeDef{Name: "c", Op: "Const", Attrs: opdef.Attrs{"dtype": tensor.Float32, "value": tensor.Scalar(float32(1))}},
		graph.NodeDef{Name: "a", Op: "IdentityN", Inputs: slices.Repeat([]string{"c:output:0"}, n), Attrs: list},
	)
	if err := lower.Lower(g, lower.Options{}); status.CodeOf(err) != status.ResourceExhausted {
		t.Errorf("got %v", err)
	}
}

// Copies of nodes with the same device, or in the same frame, share its name.
func TestCopiesShareTexts(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	nodes := []graph.NodeDef{{Name: "c", Op: "Const", Attrs: opdef.Attrs{"dtype": tensor.Float32, "value": tensor.Scalar(float32(1))}}}
	for i := range 2000 {
		nodes = append(nodes, graph.NodeDef{Name: fmt.Sprint("e", i), Op: "Enter", Inputs: []string{"c:output:0"}, Device: "/device:CPU:0",
			Attrs: opdef.Attrs{"T": tensor.Float32, "frame_name": long}})
	}
	g := called(t, "call", "/job:"+long, nodes...)
	n := allocated(func() {
		if err := lower.Lower(g, lower.Options{}); err != nil {
			t.Fatal(err)
		}
	})
	if n > 200<<20 {
		t.Errorf("%d MiB were allocated", n>>20)
	}
	if n := g.Node("call/e1999"); n == nil || n.Device != "/job:"+long+"/device:CPU:0" || n.Attrs.String("frame_name") != "call/"+long {
		t.Error("a copy has a wrong device or frame")
	}
}

// A conditional with many branches, which all take its many inputs, is not lowered.
func TestWideCaseStays(t *testing.T) {
	g, err := graphtext.Parse(testOps(t), "i = Placeholder() dtype=int32\nx = Placeholder() dtype=float\n")
	if err != nil {
		t.Fatal(err)
	}
	const inputs, branches = 2000, 2000
	lib := []graph.FunctionDef{{Signature: opdef.Op{Name: "F"}}}
	if err := g.Library.Add(lib, nil, g.Ops()); err != nil {
		t.Fatal(err)
	}
	n, err := g.Add("case", "Case", opdef.Attrs{
		"Tin": slices.Repeat([]tensor.DType{tensor.Float32}, inputs), "Tout": []tensor.DType{},
		"branches": slices.Repeat([]opdef.Func{{Name: "F"}}, branches), "_lower_using_switch_merge": true,
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range inputs {
		if err := g.Connect(g.Node("x").Out(0), n, i+1); err != nil {
			t.Fatal(err)
		}
	}
	if err := g.Connect(g.Node("i").Out(0), n, 0); err != nil {
		t.Fatal(err)
	}
	if err := lower.Lower(g, lower.Options{}); err != nil {
		t.Fatal(err)
	}
	if g.Node("case") != n {
		t.Errorf("the graph has %d nodes", g.NumNodes())
	}
}
