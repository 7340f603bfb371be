package lower

import (
	"slices"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// site holds the properties and edges of a node that has been removed from the graph.
type site struct {
	name     string
	device   string
	class    any // colocation groups, or nil
	stateful bool
	given    bool // the node is part of the original graph, so clients know its name
	in       []graph.Output
	controls []*graph.Node
	out      []graph.Edge
	outTypes []tensor.DType
}

// detach removes a node from the graph.
func (l *lowerer) detach(n *graph.Node) *site {
	s := &site{
		name: n.Name, device: n.Device, class: n.Attrs["_class"], stateful: n.Op.Stateful, given: n.ID < l.given, in: slices.Clone(n.Inputs()),
		controls: slices.Clone(n.ControlInputs()), out: slices.Clone(n.OutEdges()), outTypes: n.OutTypes,
	}
	l.g.Remove(n)
	return s
}

// attrs adds the colocation groups of the node to attributes.
func (s *site) attrs(attrs opdef.Attrs) opdef.Attrs {
	if s.class != nil {
		attrs["_class"] = s.class
	}
	return attrs
}

// replace connects the consumers of the node to values, and its control successors to done, which
// runs when the node would have run.
func (l *lowerer) replace(s *site, values []graph.Output, done *graph.Node) {
	if s.given {
		l.keepName(s, values, done)
	}
	for _, e := range s.out {
		switch {
		case l.err != nil:
			return
		case e.IsControl():
			l.order(done, e.Dst)
		default:
			l.connect(values[e.SrcOut], e.Dst, e.DstIn)
		}
	}
}

// PlaceholderAttr is the attribute of the placeholder for a lowered node, which has its name and
// outputs. The consumers of the lowered node take its values from the inputs of the placeholder.
const PlaceholderAttr = "_lowered_placeholder"

// keepName adds the placeholder for a lowered node.
func (l *lowerer) keepName(s *site, values []graph.Output, done *graph.Node) {
	if !l.o.Fetchable || len(values) == 0 {
		l.order(done, l.add(s.name, "NoOp", s.device, nil))
		return
	}
	types := make([]tensor.DType, len(values))
	for i, dtype := range s.outTypes {
		types[i] = dtype.Base()
	}
	l.order(done, l.add(s.name, "IdentityN", s.device, opdef.Attrs{"T": types, PlaceholderAttr: true}, values...))
}

// call adds a call of a function instead of the node. As in TensorFlow, a step that only fetches a
// result of the node need not run its effects, unless the node is in a function.
func (l *lowerer) call(s *site, name string, fn opdef.Func, rets []tensor.DType, args []graph.Output) *graph.Node {
	op := "PartitionedCall"
	if s.stateful {
		op = "StatefulPartitionedCall"
	}
	types := make([]tensor.DType, len(args))
	for i, a := range args {
		if l.err == nil {
			types[i] = a.DType().Base()
		}
	}
	n := l.add(s.name+"/"+name, op, s.device, opdef.Attrs{"Tin": types, "Tout": rets, "f": fn}, args...)
	l.loose[n] = true
	return n
}
