package savedmodel

import (
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/tensor"
)

// addFunctions adds to g the functions of another graph that its nodes call, directly or
// indirectly.
func addFunctions(g, from *graph.Def) {
	used := calls(from, g.Nodes)
	for i := range from.Library {
		name := from.Library[i].Signature.Name
		if !used[name] {
			continue
		}
		g.Library = append(g.Library, from.Library[i])
		if gradient := from.Gradient[name]; used[gradient] {
			if g.Gradient == nil {
				g.Gradient = map[string]string{}
			}
			g.Gradient[name] = gradient
		}
	}
}

// calls returns the names of the functions of a graph that nodes call, directly or indirectly, and
// of the gradients of these functions.
func calls(g *graph.Def, nodes []graph.NodeDef) map[string]bool {
	bodies := make(map[string][]graph.NodeDef, len(g.Library))
	for i := range g.Library {
		bodies[g.Library[i].Signature.Name] = g.Library[i].Nodes
	}
	called := map[string]bool{}
	var add func(name string)
	visit := func(nodes []graph.NodeDef) {
		for i := range nodes {
			add(nodes[i].Op)
			for name := range nodes[i].Attrs.Functions() {
				add(name)
			}
		}
	}
	add = func(name string) {
		if body, known := bodies[name]; known && !called[name] {
			called[name] = true
			visit(body)
			add(g.Gradient[name])
		}
	}
	visit(nodes)
	return called
}

// ReadsInFunctions reports whether outputs of a graph depend on variables that functions use, which
// [Freeze] cannot replace. The error has the code NotFound if the graph lacks an output.
func ReadsInFunctions(g *graph.Def, outputs []string) (bool, error) {
	nodes, err := needed(g, outputs)
	if err != nil {
		return false, err
	}
	f := &freezer{handles: map[handle]tensor.DType{}}
	for more := true; more; {
		more = f.findHandles(nodes)
	}
	for i := range nodes {
		if len(calls(g, nodes[i:i+1])) == 0 {
			continue
		}
		for in := range nodes[i].Inputs {
			if _, takes := f.takesHandle(nodes[i], in); takes {
				return true, nil
			}
		}
	}
	return hasVariables(g, calls(g, nodes)), nil
}

// hasVariables reports whether functions contain variables.
func hasVariables(g *graph.Def, functions map[string]bool) bool {
	for i := range g.Library {
		if !functions[g.Library[i].Signature.Name] {
			continue
		}
		for _, n := range g.Library[i].Nodes {
			if n.Op == "VarHandleOp" || n.Op == "Variable" || n.Op == "VariableV2" {
				return true
			}
		}
	}
	return false
}
