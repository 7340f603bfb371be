package controlflow_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/pass/controlflow"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/savedmodel"
	"github.com/weft-ml/weft/tensor"
)

// TestContextsOfTensorFlow compares with the contexts that TensorFlow wrote for a graph: a loop
// with a condition, a loop within a condition, and a loop in a loop.
func TestContextsOfTensorFlow(t *testing.T) {
	m, err := savedmodel.ReadMetaGraph("testdata/control.meta")
	if err != nil {
		t.Fatal(err)
	}
	g, err := graph.Import(m.Graph, op.Defs, graph.ImportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	found, err := controlflow.Find(g)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]context{}
	addFound(got, found)
	want := map[string]context{}
	for _, b := range m.Collections["while_context"].Bytes {
		var def pb.WhileContextDef
		if err := proto.Unmarshal(b, &def); err != nil {
			t.Fatal(err)
		}
		addDef(want, &pb.ControlFlowContextDef{Ctxt: &pb.ControlFlowContextDef_WhileCtxt{WhileCtxt: &def}})
	}
	for _, b := range m.Collections["cond_context"].Bytes {
		var def pb.CondContextDef
		if err := proto.Unmarshal(b, &def); err != nil {
			t.Fatal(err)
		}
		addDef(want, &pb.ControlFlowContextDef{Ctxt: &pb.ControlFlowContextDef_CondCtxt{CondCtxt: &def}})
	}
	if len(want) != 7 {
		t.Fatalf("TensorFlow has %d contexts", len(want))
	}
	for pivot, w := range want {
		if g := got[pivot]; g.nodes != w.nodes || g.nested != w.nested || g.ends != w.ends {
			t.Errorf("%s:\ngot  %+v\nwant %+v", pivot, g, w)
		}
	}
	if len(got) != len(want) {
		t.Errorf("found %q, want %q", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
}

// context holds the compared properties of a context. Lists are joined.
type context struct {
	nodes  string // nodes in no nested context, in order
	nested string // pivots
	ends   string // Enter and Exit nodes of a loop, or side of a branch
}

func addFound(into map[string]context, found []*controlflow.Context) {
	for _, c := range found {
		var all, nested, ends []string
		for _, n := range c.Nodes {
			all = append(all, n.Name)
		}
		for _, in := range c.Nested {
			nested = append(nested, pivotOf(in))
		}
		if c.Loop != nil {
			for _, v := range c.Loop.Vars {
				ends = append(ends, v.Enter.Name, v.Exit.Name)
			}
		} else {
			ends = append(ends, c.Branch.Pred.Node.Name, string(rune('0'+c.Branch.Side)))
		}
		into[pivotOf(c)] = newContext(all, nested, ends)
		addFound(into, c.Nested)
	}
}

func newContext(nodes, nested, ends []string) context {
	for _, list := range [][]string{nodes, nested, ends} {
		slices.Sort(list)
	}
	return context{strings.Join(nodes, " "), strings.Join(nested, " "), strings.Join(ends, " ")}
}

func pivotOf(c *controlflow.Context) string {
	if c.Loop != nil {
		return c.Loop.Cond.Name
	}
	return c.Branch.Pivot.Name
}

// addDef adds the contexts of a message of TensorFlow. It returns the pivot, and all nodes in the
// context and in nested ones.
func addDef(into map[string]context, def *pb.ControlFlowContextDef) (pivot string, all map[string]bool) {
	var inner []*pb.ControlFlowContextDef
	var values *pb.ValuesDef
	var ends []string
	if w := def.GetWhileCtxt(); w != nil {
		pivot, values, inner = w.GetPivotName(), w.GetValuesDef(), w.GetNestedContexts()
		for _, end := range slices.Concat(w.GetLoopEnterNames(), w.GetLoopExitNames()) {
			ends = append(ends, node(end))
		}
	} else {
		c := def.GetCondCtxt()
		pivot, values, inner = c.GetPivotName(), c.GetValuesDef(), c.GetNestedContexts()
		ends = []string{node(c.GetPredName()), string('0' + c.GetBranch())}
	}
	all = map[string]bool{}
	for _, v := range values.GetValues() {
		if values.GetExternalValues()[v] == "" {
			all[node(v)] = true
		}
	}
	own := maps.Clone(all)
	var nested []string
	for _, in := range inner {
		pivot, within := addDef(into, in)
		nested = append(nested, pivot)
		maps.DeleteFunc(own, func(n string, _ bool) bool { return within[n] })
		maps.Copy(all, within)
	}
	into[node(pivot)] = newContext(slices.Collect(maps.Keys(own)), nested, ends)
	return node(pivot), all
}

func node(output string) string {
	name, _, _ := strings.Cut(output, ":")
	return name
}

// TestContextsOfBuilders has a graph built by package op, with a value that passes through a
// context and a value without consumers.
func TestContextsOfBuilders(t *testing.T) {
	s := op.NewScope()
	x := op.Placeholder(s.Named("x"), tensor.Float32)
	p := op.Placeholder(s.Named("p"), tensor.Bool)
	three := op.Const(s, int32(3))
	op.Cond(s, p,
		func(s *op.Scope) []op.Output {
			return op.WhileLoop(s, []op.Output{op.Const(s, int32(0)), x},
				func(s *op.Scope, v []op.Output) op.Output { return op.Less(s, v[0], three) },
				func(s *op.Scope, v []op.Output) []op.Output {
					return []op.Output{op.AddV2(s, v[0], op.Const(s, int32(1))), op.Mul(s, v[1], x)}
				})[1:]
		},
		func(*op.Scope) []op.Output { return []op.Output{x} })
	op.Cond(s, p, func(*op.Scope) []op.Output { return []op.Output{x} }, func(s *op.Scope) []op.Output { return []op.Output{op.Sin(s, x)} })
	g, err := s.Finalize()
	if err != nil {
		t.Fatal(err)
	}
	found, err := controlflow.Find(g)
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != 4 {
		t.Fatalf("found %d contexts", len(found))
	}
	got := map[string]context{}
	addFound(got, found)
	if in := got["cond/switch_t"].nested; in != "cond/while/LoopCond" {
		t.Errorf("in the branch is %q", in)
	}
	if one := got["cond_1/switch_f"]; !strings.Contains(one.nodes, "cond_1/Sin") || strings.Contains(one.nodes, "Merge") {
		t.Errorf("in the other branch are %s", one.nodes)
	}
}
