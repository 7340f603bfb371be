// Package graph holds graphs of operations: nodes, edges, names, versions and function libraries.
// Clients build graphs, and the master rewrites them before it runs them.
//
// A [Graph] is always well formed: names are unique and legal, the types of connected inputs are
// those of the operation, and all attributes are present and valid. A [Def] is the definition of a
// graph in a file or a message and may be invalid. [Import] converts a Def to a Graph, and
// [Graph.Def] converts a Graph to a Def.
//
// A Graph must not be modified concurrently with other uses. Only the Library is safe for
// concurrent use. Passes that rewrite a graph work on a copy.
package graph

import (
	"iter"

	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Control is the index of both ends of a control edge.
const Control = -1

// Graph is a set of nodes and the edges between them.
type Graph struct {
	Versions Versions
	Library  *Library // functions that nodes may call; never nil

	ops     opdef.Lookup
	options ImportOptions
	nodes   []*Node // by ID; nil where a node was removed
	byName  map[string]*Node
}

// Node is one operation of a graph. Fields may be read directly. Device and Assigned may be set;
// Attrs is changed with [Node.SetAttr]; the others must not be changed.
type Node struct {
	ID       int    // position in the graph; IDs of removed nodes are not reused
	Name     string // unique in the graph
	Op       *opdef.Op
	Attrs    opdef.Attrs // attributes of Op, complete; replaced as a whole
	Device   string      // requested by the client; may be partial
	Assigned string      // full name, set by placement

	InTypes  []tensor.DType // declared types of the data inputs
	OutTypes []tensor.DType // declared types of the outputs

	in        []Output // data inputs by position; Node is nil for unconnected ones
	controlIn []*Node  // control inputs without duplicates
	out       []Edge   // data and control edges to consumers

	// position in out; nil while out is short (see indexFrom)
	outIndex map[consumer]int
	// position in controlIn; nil while controlIn is short
	controlIndex map[*Node]int
}

// Output is the output of a node with the given index.
type Output struct {
	Node  *Node
	Index int
}

// Edge is an edge from output SrcOut of Src to input DstIn of Dst. Both indices of a control edge
// are Control.
type Edge struct {
	Src    *Node
	SrcOut int
	Dst    *Node
	DstIn  int
}

// New returns an empty graph. Names of operations are looked up in its library first, then in ops.
func New(ops opdef.Lookup) *Graph {
	return &Graph{ops: ops, byName: map[string]*Node{}, Library: newLibrary()}
}

// Ops returns the operations of the graph, without the functions of its library.
func (g *Graph) Ops() opdef.Lookup { return g.ops }

// LookupOp returns the operation or library function of the given name.
func (g *Graph) LookupOp(name string) (*opdef.Op, bool) {
	if f, ok := g.Library.Lookup(name); ok {
		return &f.Def.Signature, true
	}
	return g.ops.LookupOp(name)
}

// NumIDs returns one more than the highest ID that was ever used, the length of tables indexed by
// ID.
func (g *Graph) NumIDs() int { return len(g.nodes) }

// NumNodes returns the number of nodes.
func (g *Graph) NumNodes() int { return len(g.byName) }

// Nodes returns the nodes in the order of their IDs.
func (g *Graph) Nodes() iter.Seq[*Node] {
	return func(yield func(*Node) bool) {
		for _, n := range g.nodes {
			if n != nil && !yield(n) {
				return
			}
		}
	}
}

// Node returns the node of the given name, or nil.
func (g *Graph) Node(name string) *Node { return g.byName[name] }

// NodeByID returns the node of the given ID, or nil.
func (g *Graph) NodeByID(id int) *Node {
	if id < 0 || id >= len(g.nodes) {
		return nil
	}
	return g.nodes[id]
}

// Add adds a node with unconnected inputs. It checks the attributes and adds defaults. It fails
// with InvalidArgument if the name is illegal or in use or if an attribute is wrong, and with
// NotFound if there is no such operation.
func (g *Graph) Add(name, op string, attrs opdef.Attrs) (*Node, error) {
	if !LegalName(name) {
		return nil, illegalName(name)
	}
	if g.byName[name] != nil {
		return nil, notUnique(name)
	}
	n, err := newNode(g, name, op, attrs)
	if err != nil {
		return nil, err
	}
	g.insert(n)
	return n, nil
}

// newNode returns a node that is not in a graph yet.
func newNode(ops opdef.Lookup, name, op string, attrs opdef.Attrs) (*Node, error) {
	def, ok := ops.LookupOp(op)
	if !ok {
		return nil, notRegistered(op, name)
	}
	attrs, err := def.CheckAttrs(name, attrs)
	if err != nil {
		return nil, err
	}
	n := &Node{Name: name, Op: def, Attrs: attrs}
	if n.InTypes, err = def.InputTypes(attrs); err != nil {
		return nil, status.AtNode(err, name)
	}
	if n.OutTypes, err = def.OutputTypes(attrs); err != nil {
		return nil, status.AtNode(err, name)
	}
	n.in = make([]Output, len(n.InTypes))
	return n, nil
}

func (g *Graph) insert(n *Node) {
	n.ID = len(g.nodes)
	g.nodes = append(g.nodes, n)
	g.byName[n.Name] = n
}

// NumInputs returns the number of data inputs.
func (n *Node) NumInputs() int { return len(n.in) }

// Input returns the source of data input i; its Node is nil if the input is not connected.
func (n *Node) Input(i int) Output { return n.in[i] }

// Inputs returns the sources of the data inputs. The caller must not modify the slice.
func (n *Node) Inputs() []Output { return n.in }

// ControlInputs returns the sources of the control edges to the node. The caller must not modify
// the slice.
func (n *Node) ControlInputs() []*Node { return n.controlIn }

// OutEdges returns the data and control edges to consumers. The caller must not modify the slice.
func (n *Node) OutEdges() []Edge { return n.out }

// Out returns output i.
func (n *Node) Out(i int) Output { return Output{n, i} }

// SetAttr sets an attribute. It replaces the map of attributes by a modified copy, because nodes
// may share it.
func (n *Node) SetAttr(name string, v any) {
	n.Attrs = n.Attrs.Clone()
	n.Attrs[name] = v
}

// DType returns the type of the output, which may be a reference type.
func (o Output) DType() tensor.DType { return o.Node.OutTypes[o.Index] }

// IsControl reports whether the edge is a control edge.
func (e Edge) IsControl() bool { return e.SrcOut == Control }

// Copy returns a graph with copies of all nodes, in the same order. IDs are renumbered without
// gaps. The library is shared.
func (g *Graph) Copy() *Graph { return g.CopyIf(func(*Node) bool { return true }) }

// CopyIf is Copy for the nodes for which keep returns true, and the edges between them.
func (g *Graph) CopyIf(keep func(*Node) bool) *Graph {
	return g.CopyParts(1, func(n *Node) int {
		if keep(n) {
			return 0
		}
		return -1
	})[0]
}

// CopyParts copies nodes into count graphs. part returns the index of the graph for a node, or a
// negative number to omit the node. Edges between different graphs are omitted.
func (g *Graph) CopyParts(count int, part func(*Node) int) []*Graph {
	out := make([]*Graph, count)
	for i := range out {
		out[i] = New(g.ops)
		out[i].Versions, out[i].Library, out[i].options = g.Versions, g.Library, g.options
	}
	copies := make([]copied, len(g.nodes)) // by ID of the original
	for n := range g.Nodes() {
		at := part(n)
		if at < 0 {
			continue
		}
		c := &Node{
			Name: n.Name, Op: n.Op, Attrs: n.Attrs, Device: n.Device, Assigned: n.Assigned,
			InTypes: n.InTypes, OutTypes: n.OutTypes, in: make([]Output, len(n.in)),
		}
		copies[n.ID] = copied{c, at}
		out[at].insert(c)
	}
	for id, c := range copies {
		if c.node != nil {
			c.connect(g.nodes[id], copies)
		}
	}
	return out
}

// copied is the copy of a node and the index of its graph.
type copied struct {
	node *Node
	part int
}

// connect connects the copy of n to the copies of its inputs in the same graph.
func (c copied) connect(n *Node, copies []copied) {
	for i, in := range n.in {
		if in.Node == nil {
			continue
		}
		if src := copies[in.Node.ID]; src.node != nil && src.part == c.part {
			c.node.setInput(i, Output{src.node, in.Index})
		}
	}
	for _, control := range n.controlIn {
		if src := copies[control.ID]; src.node != nil && src.part == c.part {
			c.node.addControl(src.node)
		}
	}
}
