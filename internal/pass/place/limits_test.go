package place

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/test/graphtext"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func addNode(t *testing.T, g *graph.Graph, name, op string, attrs opdef.Attrs, in ...graph.Output) *graph.Node {
	t.Helper()
	n, err := g.Add(name, op, attrs)
	if err != nil {
		t.Fatal(err)
	}
	for i, src := range in {
		if err := g.Connect(src, n, i); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

// The ends of a call take no memory for its name.
func TestEndsOfLongCall(t *testing.T) {
	kernels := newTestKernels(t)
	g, err := graphtext.Parse(kernels.Ops, `
func F(x: resource) -> (y: resource) {
	return y=x
}
a = _Arg() T=resource
`)
	if err != nil {
		t.Fatal(err)
	}
	resource := []tensor.DType{tensor.Resource}
	call := addNode(t, g, strings.Repeat("x", 1<<20), "PartitionedCall",
		opdef.Attrs{"Tin": resource, "Tout": resource, "f": opdef.Func{Name: "F"}}, g.Node("a").Out(0))
	for i := range 1000 {
		addNode(t, g, fmt.Sprint("r", i), "Identity", opdef.Attrs{"T": tensor.Resource}, call.Out(0))
	}
	devices, client := cluster("small")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := Place(g, Options{Devices: devices, Client: client, Kernels: kernels}); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 100<<20 {
		t.Errorf("%d MiB were allocated", n>>20)
	}
}

// Functions that call each other twice with attributes that contain their own have a bound.
func TestBodiesThatDouble(t *testing.T) {
	kernels := newTestKernels(t)
	var defs []graph.FunctionDef
	resource := []tensor.DType{tensor.Resource}
	arg := func(name string) []opdef.Arg { return []opdef.Arg{{Name: name, DType: tensor.Resource}} }
	const depth = 40
	for i := range depth {
		f := graph.FunctionDef{
			Signature: opdef.Op{Name: fmt.Sprint("F", i), Inputs: arg("x"), Outputs: arg("y"), Attrs: []opdef.Attr{{Name: "a", Kind: "func"}}},
			Ret:       map[string]string{"y": "x"},
		}
		for _, name := range []string{"l", "r"} {
			if i+1 < depth {
				grown := opdef.Func{Name: name, Attrs: opdef.Attrs{"a": opdef.Placeholder("a")}}
				f.Nodes = append(f.Nodes, graph.NodeDef{Name: name, Op: "PartitionedCall", Inputs: []string{"x"}, Attrs: opdef.Attrs{
					"Tin": resource, "Tout": resource, "f": opdef.Func{Name: fmt.Sprint("F", i+1), Attrs: opdef.Attrs{"a": grown}},
				}})
			}
		}
		defs = append(defs, f)
	}
	g, err := graph.Import(&graph.Def{Library: defs}, kernels.Ops, graph.ImportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	a := addNode(t, g, "a", "_Arg", opdef.Attrs{"T": tensor.Resource})
	addNode(t, g, "call", "PartitionedCall", opdef.Attrs{
		"Tin": resource, "Tout": resource, "f": opdef.Func{Name: "F0", Attrs: opdef.Attrs{"a": opdef.Func{Name: "f"}}},
	}, a.Out(0))
	devices, client := cluster("small")
	err = Place(g, Options{Devices: devices, Client: client, Kernels: kernels})
	if status.CodeOf(err) != status.ResourceExhausted {
		t.Errorf("got %v", err)
	}
}

// Soft placement describes a bounded number of groups.
func TestManySoftGroups(t *testing.T) {
	kernels := newTestKernels(t)
	g := graph.New(kernels.Ops)
	const n = 40_000
	for i := range n {
		addNode(t, g, fmt.Sprint("v", i), "HandleVariableCPU", nil).Device = "/device:GPU:0"
	}
	devices, client := cluster("small")
	began := time.Now()
	warnings := 0
	err := Place(g, Options{Devices: devices, Client: client, Kernels: kernels, Soft: true, Warn: func(string) { warnings++ }})
	if err != nil || warnings != n {
		t.Errorf("%d warnings, %v", warnings, err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("took %v", took)
	}
}
