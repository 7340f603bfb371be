package graph_test

import (
	"slices"
	"strconv"
	"testing"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/opdef"
)

func named(name string, nodes ...graph.NodeDef) graph.FunctionDef {
	return graph.FunctionDef{Signature: opdef.Op{Name: name}, Nodes: nodes}
}

func TestLibraryParts(t *testing.T) {
	l := graph.New(noOps{}).Library
	err := l.Add([]graph.FunctionDef{
		named("calls", graph.NodeDef{Name: "n", Op: "called"}),
		named("called"),
		named("branches", graph.NodeDef{Name: "n", Op: "Case", Attrs: opdef.Attrs{"branches": []opdef.Func{{Name: "first"}, {Name: "calls"}}}}),
		named("first", graph.NodeDef{Name: "n", Op: "While", Attrs: opdef.Attrs{"body": opdef.Func{Name: "first"}}}),
		named("nested", graph.NodeDef{Name: "n", Op: "SymbolicGradient", Attrs: opdef.Attrs{
			"f": opdef.Func{Name: "SymbolicGradient", Attrs: opdef.Attrs{"f": opdef.Func{Name: "called"}}},
		}}),
		named("gradient"),
	}, map[string]string{"called": "gradient", "nested": "first"}, noOps{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ of, want []string }{
		{[]string{"calls"}, []string{"called", "calls", "gradient"}},
		{[]string{"branches", "unknown"}, []string{"branches", "called", "calls", "first", "gradient"}},
		{[]string{"nested"}, []string{"called", "first", "gradient", "nested"}},
		{nil, nil},
	} {
		defs, gradient := l.Part(c.of)
		var got []string
		for i := range defs {
			got = append(got, defs[i].Signature.Name)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%v use %v, want %v", c.of, got, c.want)
		}
		if want := slices.Contains(got, "called"); (gradient["called"] == "gradient") != want {
			t.Errorf("the gradients of %v are %v", c.of, gradient)
		}
	}
	other := l.With([]graph.FunctionDef{named("called", graph.NodeDef{Name: "new", Op: "NoOp"}), named("more")}, nil)
	if f, _ := other.Lookup("called"); len(f.Def.Nodes) != 1 {
		t.Error("a function of the other graph does not come first")
	}
	if f, _ := l.Lookup("called"); len(f.Def.Nodes) != 0 || other.Len() != l.Len()+1 || other.Gradient("nested") != "first" {
		t.Error("the library is not what it was, or the other lacks what it had")
	}
}

// TestLongChainOfFunctions finds what a function uses in a library where each calls the next one.
func TestLongChainOfFunctions(t *testing.T) {
	const n = 200_000
	defs := make([]graph.FunctionDef, n)
	for i := range defs {
		defs[i] = named(strconv.Itoa(i), graph.NodeDef{Name: "n", Op: strconv.Itoa(i + 1)})
	}
	l := graph.New(noOps{}).Library
	if err := l.Add(defs, nil, noOps{}); err != nil {
		t.Fatal(err)
	}
	if got := l.Used([]string{"10"}).Len(); got != n-10 {
		t.Errorf("%d functions are used, want %d", got, n-10)
	}
}

// noOps is a Lookup without operations.
type noOps struct{}

func (noOps) LookupOp(string) (*opdef.Op, bool) { return nil, false }
