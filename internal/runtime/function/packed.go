package function

import (
	"slices"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/status"
)

// PackedArg is a component of an argument that has one on each of several devices. A part on the
// device of a component takes it instead of the argument.
type PackedArg struct {
	Arg, Component int // positions of the argument, and of the component in it
}

// use is a node that takes a packed argument.
type use struct {
	arg  int         // position of the argument
	node *graph.Node // _Arg node for this use alone
	by   *graph.Node // the node that takes it
}

// unpack gives each node that takes a packed argument an _Arg node of its own, so that every one
// can be placed on another device.
func unpack(body *graph.Body, packed map[int][]string, newName func(prefix string) string) ([]use, error) {
	var uses []use
	for i := range body.Args {
		if packed[i] == nil {
			continue
		}
		arg := body.Args[i]
		for _, e := range slices.Clone(arg.OutEdges()) {
			if e.IsControl() {
				continue
			}
			attrs := arg.Attrs.Clone()
			n, err := body.Graph.Add(newName(arg.Name), "_Arg", attrs)
			if err != nil {
				return nil, err
			}
			n.Device = e.Dst.Device
			if err := body.Graph.Connect(n.Out(0), e.Dst, e.DstIn); err != nil {
				return nil, err
			}
			uses = append(uses, use{i, n, e.Dst})
		}
		body.Graph.Remove(arg)
	}
	return uses, nil
}

// choose numbers the _Arg nodes of uses after the arguments of the function, and merges those with
// the same component. The nodes have been placed.
func choose(body *graph.Body, uses []use, packed map[int][]string) ([]PackedArg, error) {
	var chosen []PackedArg
	var nodes []*graph.Node
	position := map[PackedArg]int{} // in chosen
	for _, u := range uses {
		if u.by.Assigned != "" {
			u.node.Assigned = u.by.Assigned
		}
		c := PackedArg{u.arg, slices.Index(packed[u.arg], u.node.Assigned)}
		if c.Component < 0 {
			return nil, status.InvalidArgumentf("Failed to find component of packed argument %s on device %s", body.Args[u.arg].Name, u.node.Assigned)
		}
		if k, ok := position[c]; ok {
			for _, e := range slices.Clone(u.node.OutEdges()) {
				if err := body.Graph.Connect(nodes[k].Out(0), e.Dst, e.DstIn); err != nil {
					return nil, err
				}
			}
			body.Graph.Remove(u.node)
			continue
		}
		u.node.SetAttr("index", int64(len(body.Args)+len(chosen)))
		position[c] = len(chosen)
		chosen, nodes = append(chosen, c), append(nodes, u.node)
	}
	return chosen, nil
}

// origins returns the nodes whose devices the results have. That is the node that produces a
// result, or the first one before it that requests a device if only identities without a device are
// between them. TensorFlow returns results from there too, and tells clients so.
//
// Each identity is read once: all results may come from one long row of them.
func origins(rets []*graph.Node) []*graph.Node {
	ends := map[*graph.Node]*graph.Node{} // of rows of identities, by each node of the row
	out := make([]*graph.Node, len(rets))
	for i, ret := range rets {
		source := ret.Input(0).Node
		var row []*graph.Node
		n := source
		for n.Device == "" && n.Op.Name == "Identity" && len(n.Attrs.Strings("_class")) == 0 {
			if end := ends[n]; end != nil {
				n = end
				break
			}
			row = append(row, n)
			n = n.Input(0).Node
		}
		for _, r := range row {
			ends[r] = n
		}
		if out[i] = n; n.Device == "" && n.Op.Name != "_Arg" {
			out[i] = source
		}
	}
	return out
}

// follow assigns results, and the identities before them, to the devices of their origins.
func follow(rets, origins []*graph.Node) {
	done := map[*graph.Node]bool{}
	for i, ret := range rets {
		ret.Assigned = origins[i].Assigned
		for n := ret.Input(0).Node; n != origins[i] && !done[n]; n = n.Input(0).Node {
			done[n] = true
			n.Assigned = origins[i].Assigned
		}
	}
}
