package weft

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

// FreezeSavedModel loads a SavedModel as [LoadSavedModel] does and returns the part of its graph
// that the given outputs need ("y" or "y:0"), with constants in the place of variables. Where
// functions, loops or branches use variables, the nodes of their bodies take the place of the
// calls, as in TensorFlow.
func FreezeSavedModel(ctx context.Context, target, dir string, tags, outputs []string, opts ...Option) (*graph.Def, error) {
	model, meta, err := openSavedModel(dir, tags, opts)
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
	m, err := loadSavedModel(ctx, target, model, meta, opts...)
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

// inlined returns the graph of a model with the bodies of functions in the place of calls, loops
// and branches. Outputs of these keep their names.
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

// lowered returns nodes whose loops and branches ask to become nodes of the graph.
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
// adds to the graph.
func (m *SavedModel) variables(ctx context.Context, outputs []string) (map[string]tensor.Tensor, error) {
	references, handles, err := savedmodel.VariableNodes(m.Meta.Graph, outputs)
	if err != nil {
		return nil, err
	}
	s := op.ScopeOf(m.Session.graph)
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
	out, err := m.Session.Run(ctx, nil, fetches, nil)
	if err != nil {
		return nil, err
	}
	values := map[string]tensor.Tensor{}
	for i, name := range append(references, handles...) {
		values[name] = out[i]
	}
	return values, nil
}
