package serve

import (
	"context"
	"slices"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/pass/lower"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/savedmodel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Freeze loads a SavedModel as [Load] does and returns the part of its graph that the given outputs
// ("y" or "y:0") need, with constants instead of variables. Where functions, loops or branches use
// variables, the nodes of their bodies replace the calls, as in TensorFlow.
func Freeze(ctx context.Context, target, dir string, outputs []string, opts ...ModelOption) (*graph.Def, error) {
	set := newSettings(opts)
	files, meta, err := open(dir, set)
	if err != nil {
		return nil, err
	}
	hidden, err := savedmodel.ReadsInFunctions(meta.Graph, outputs)
	if err == nil && hidden {
		meta.Graph, err = inlined(meta)
	}
	if err != nil {
		return nil, status.Errorf(status.CodeOf(err), "%s: %w", dir, err)
	}
	m, err := load(ctx, target, files, meta, set)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	values, err := m.variables(ctx, outputs)
	if err != nil {
		return nil, err
	}
	return savedmodel.Freeze(m.Meta.Graph, outputs, values)
}

// inlined returns the graph of a model with the nodes of function bodies instead of calls, loops
// and branches. The outputs of these keep their names.
func inlined(meta *savedmodel.MetaGraph) (*graph.Def, error) {
	def := *meta.Graph
	def.Nodes = lowered(def.Nodes)
	def.Library = slices.Clone(def.Library)
	for i := range def.Library {
		def.Library[i].Nodes = lowered(def.Library[i].Nodes)
	}
	g, err := graph.Import(&def, definitions(meta.Ops), graph.ImportOptions{})
	if err != nil {
		return nil, err
	}
	if err := lower.Lower(g, lower.Options{Fetchable: true, Direct: true, Marked: true}); err != nil {
		return nil, err
	}
	return g.Def(), nil
}

// lowered returns nodes whose loops and branches are marked for lowering.
func lowered(nodes []graph.NodeDef) []graph.NodeDef {
	nodes = slices.Clone(nodes)
	for i := range nodes {
		switch nodes[i].Op {
		case "If", "StatelessIf", "Case", "StatelessCase", "While", "StatelessWhile":
			nodes[i].Attrs = nodes[i].Attrs.Clone()
			nodes[i].Attrs["_lower_using_switch_merge"] = true
		}
	}
	return nodes
}

// variables returns the values of the variables that outputs need, by the names of their nodes. It
// adds nodes to the graph.
func (m *Model) variables(ctx context.Context, outputs []string) (map[string]tensor.Tensor, error) {
	references, handles, err := savedmodel.VariableNodes(m.Meta.Graph, outputs)
	if err != nil {
		return nil, err
	}
	s := op.ScopeOf(m.Graph)
	var fetches []graph.Output
	for _, name := range references {
		fetches = append(fetches, s.Graph().Node(name).Out(0))
	}
	for _, name := range handles {
		handle := s.Graph().Node(name).Out(0)
		fetches = append(fetches, op.ReadVariableOp(s.SubScope("freeze").ColocateWith(handle.Node), handle, handle.Node.Attrs.Type("dtype")))
	}
	if err := s.Err(); err != nil || len(fetches) == 0 {
		return nil, err
	}
	out, err := m.Session.Fetch(ctx, nil, fetches...)
	if err != nil {
		return nil, err
	}
	values := map[string]tensor.Tensor{}
	for i, name := range append(references, handles...) {
		values[name] = out[i]
	}
	return values, nil
}
