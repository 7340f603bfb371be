package weft

import (
	"context"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/savedmodel"
	"github.com/weft-ml/weft/tensor"
)

// FreezeSavedModel loads a SavedModel as [LoadSavedModel] does and returns the part of its graph that the given outputs need
// ("y" or "y:0"), with constants in the place of variables.
func FreezeSavedModel(ctx context.Context, target, dir string, tags, outputs []string, opts ...Option) (*graph.Def, error) {
	m, err := LoadSavedModel(ctx, target, dir, tags, opts...)
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

// variables returns the values of the variables that outputs need, by the names of their nodes. It adds to the graph.
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
