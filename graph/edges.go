package graph

import (
	"slices"

	"github.com/weft-ml/weft/status"
)

// indexFrom is the length from which a list of edges has an index. Shorter lists are searched
// linearly. With the index, edges of a constant with a million consumers, or of an initializer with
// a million control inputs, are changed in constant time.
const indexFrom = 32

// consumer is the destination of an edge. A source has at most one edge to a consumer.
type consumer struct {
	node *Node
	in   int
}

// Connect connects data input in of dst to output src, instead of its previous source if there is
// one. It fails with InvalidArgument if the input or the output does not exist, or if their types
// differ. A reference may be connected to an input that takes a value.
func (g *Graph) Connect(src Output, dst *Node, in int) error {
	if err := checkEdge(src, dst, in); err != nil {
		return err
	}
	if old := dst.in[in]; old.Node != nil {
		old.Node.removeOut(dst, in)
	}
	dst.setInput(in, src)
	return nil
}

// checkEdge returns an error if src cannot be connected to data input in of dst.
func checkEdge(src Output, dst *Node, in int) error {
	if in < 0 || in >= len(dst.in) {
		return status.InvalidArgumentf("Input %d of node %s does not exist. Node only has %d inputs.", in, dst.Name, len(dst.in))
	}
	if src.Index < 0 || src.Index >= len(src.Node.OutTypes) {
		return status.InvalidArgumentf("Node '%s': Connecting to invalid output %d of source node %s which has %d outputs. Try using "+
			"tf.compat.v1.experimental.output_all_intermediates(True).",
			dst.Name, src.Index, src.Node.Name, len(src.Node.OutTypes))
	}
	have, want := src.Node.OutTypes[src.Index], dst.InTypes[in]
	if have != want && (want.IsRef() || have.Base() != want) {
		return status.InvalidArgumentf("Input %d of node %s was passed %v from %s:%d incompatible with expected %v.",
			in, dst.Name, have, src.Node.Name, src.Index, want)
	}
	return nil
}

// setInput connects a data input that is not connected.
func (n *Node) setInput(in int, src Output) {
	n.in[in] = src
	src.Node.addOut(Edge{src.Node, src.Index, n, in})
}

// Disconnect removes the edge to data input in of dst, if there is one.
func (g *Graph) Disconnect(dst *Node, in int) {
	if src := dst.in[in]; src.Node != nil {
		src.Node.removeOut(dst, in)
		dst.in[in] = Output{}
	}
}

// ConnectControl adds a control edge: dst runs after src. It does nothing if the edge exists.
func (g *Graph) ConnectControl(src, dst *Node) {
	if dst.controlPosition(src) < 0 {
		dst.addControl(src)
	}
}

// addControl adds a control edge, which must not exist yet.
func (n *Node) addControl(src *Node) {
	if n.controlIndex != nil {
		n.controlIndex[src] = len(n.controlIn)
	}
	n.controlIn = append(n.controlIn, src)
	src.addOut(Edge{src, Control, n, Control})
}

// DisconnectControl removes the control edge from src to dst, if there is one.
func (g *Graph) DisconnectControl(src, dst *Node) {
	if i := dst.controlPosition(src); i >= 0 {
		dst.removeControl(i)
		src.removeOut(dst, Control)
	}
}

// Remove removes a node and all edges to and from it. Inputs of its consumers are unconnected
// afterwards.
func (g *Graph) Remove(n *Node) {
	for i := range n.in {
		g.Disconnect(n, i)
	}
	for _, c := range n.controlIn {
		c.removeOut(n, Control)
	}
	for _, e := range n.out {
		switch {
		case e.Dst == n:
		case e.SrcOut == Control:
			e.Dst.removeControl(e.Dst.controlPosition(n))
		default:
			e.Dst.in[e.DstIn] = Output{}
		}
	}
	n.in, n.controlIn, n.out, n.outIndex, n.controlIndex = nil, nil, nil, nil, nil
	g.nodes[n.ID] = nil
	delete(g.byName, n.Name)
}

// controlPosition returns the position of src in the control inputs, or -1.
func (n *Node) controlPosition(src *Node) int {
	if len(n.controlIn) < indexFrom {
		return slices.Index(n.controlIn, src)
	}
	if n.controlIndex == nil {
		n.controlIndex = make(map[*Node]int, 2*len(n.controlIn))
		for i, c := range n.controlIn {
			n.controlIndex[c] = i
		}
	}
	if i, ok := n.controlIndex[src]; ok {
		return i
	}
	return -1
}

func (n *Node) removeControl(i int) {
	if n.controlIndex == nil {
		n.controlIn = slices.Delete(n.controlIn, i, i+1)
		return
	}
	last := len(n.controlIn) - 1
	delete(n.controlIndex, n.controlIn[i])
	if i < last {
		n.controlIn[i] = n.controlIn[last]
		n.controlIndex[n.controlIn[i]] = i
	}
	n.controlIn[last] = nil
	n.controlIn = n.controlIn[:last]
}

func (n *Node) addOut(e Edge) {
	if n.outIndex != nil {
		n.outIndex[consumer{e.Dst, e.DstIn}] = len(n.out)
	}
	n.out = append(n.out, e)
}

// removeOut removes the edge to input in of dst, which must exist.
func (n *Node) removeOut(dst *Node, in int) {
	if n.outIndex == nil && len(n.out) < indexFrom {
		n.out = slices.DeleteFunc(n.out, func(e Edge) bool { return e.Dst == dst && e.DstIn == in })
		return
	}
	if n.outIndex == nil {
		n.outIndex = make(map[consumer]int, len(n.out))
		for i, e := range n.out {
			n.outIndex[consumer{e.Dst, e.DstIn}] = i
		}
	}
	i, last := n.outIndex[consumer{dst, in}], len(n.out)-1
	delete(n.outIndex, consumer{dst, in})
	if i < last {
		n.out[i] = n.out[last]
		n.outIndex[consumer{n.out[i].Dst, n.out[i].DstIn}] = i
	}
	n.out[last] = Edge{}
	n.out = n.out[:last]
}
