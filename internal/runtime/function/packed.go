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
	for _, u := range uses {
		if u.by.Assigned != "" {
			u.node.Assigned = u.by.Assigned
		}
		c := PackedArg{u.arg, slices.Index(packed[u.arg], u.node.Assigned)}
		if c.Component < 0 {
			return nil, status.InvalidArgumentf("Failed to find component of packed argument %s on device %s", body.Args[u.arg].Name, u.node.Assigned)
		}
		if k := slices.Index(chosen, c); k >= 0 {
			for _, e := range slices.Clone(u.node.OutEdges()) {
				if err := body.Graph.Connect(nodes[k].Out(0), e.Dst, e.DstIn); err != nil {
					return nil, err
				}
			}
			body.Graph.Remove(u.node)
			continue
		}
		u.node.SetAttr("index", int64(len(body.Args)+len(chosen)))
		chosen, nodes = append(chosen, c), append(nodes, u.node)
	}
	return chosen, nil
}

// origin returns the node whose device a result has: the one that produces it, or the first one
// before it that requests a device if only identities without a device are between them. TensorFlow
// returns results from there too, and tells clients so.
func origin(ret *graph.Node) *graph.Node {
	n := ret.Input(0).Node
	for n.Device == "" && n.Op.Name == "Identity" && len(n.Attrs.Strings("_class")) == 0 {
		n = n.Input(0).Node
	}
	if n.Device == "" && n.Op.Name != "_Arg" {
		return ret.Input(0).Node
	}
	return n
}

// follow assigns a result, and the identities before it, to the device of its origin.
func follow(ret, origin *graph.Node) {
	ret.Assigned = origin.Assigned
	for n := ret.Input(0).Node; n != origin; n = n.Input(0).Node {
		n.Assigned = origin.Assigned
	}
}
