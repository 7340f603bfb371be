// Package graph holds the graphs that clients build and that the passes of the master rewrite:
// nodes, edges, names, versions and function libraries.
//
// A [Graph] is always well formed: names are unique and legal, every input that is connected has
// the type that its operation asks for, and attributes are complete and allowed. A [Def] is the
// same thing written down, and may be wrong in every way; [Import] makes the one from the other and
// [Graph.Def] the reverse.
//
// Graphs are not safe for concurrent modification. Passes copy what they rewrite.
package graph

import (
	"iter"

	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Control is the index of the control edges of a node, as a source and as a destination.
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

// Node is one operation of a graph. Its fields are read freely and changed only as their comments
// say.
type Node struct {
	ID       int // position in the graph; ids of removed nodes are not used again
	Name     string
	Op       *opdef.Op
	Attrs    opdef.Attrs // of Op, complete; replaced as a whole
	Device   string      // requested by the client; may be partial
	Assigned string      // full name, set by placement

	InTypes  []tensor.DType
	OutTypes []tensor.DType

	in        []Output // data inputs by position; Node is nil where not connected yet
	controlIn []*Node  // without repetitions
	out       []Edge   // data and control edges to consumers

	// position in out, for nodes of many consumers; nil until it is needed
	outIndex map[consumer]int
	// position in controlIn, for nodes of many control inputs; nil until it is needed
	controlIndex map[*Node]int
}

// Output is output Index of a node.
type Output struct {
	Node  *Node
	Index int
}

// Edge leads from an output of Src to an input of Dst; both indices are Control for a control edge.
type Edge struct {
	Src    *Node
	SrcOut int
	Dst    *Node
	DstIn  int
}

// New returns an empty graph whose operations are looked up in ops; functions of its library come
// first.
func New(ops opdef.Lookup) *Graph {
	return &Graph{ops: ops, byName: map[string]*Node{}, Library: newLibrary()}
}

// Ops returns what the graph looks operations up in, functions not included.
func (g *Graph) Ops() opdef.Lookup { return g.ops }

// LookupOp returns the operation or library function of the given name.
func (g *Graph) LookupOp(name string) (*opdef.Op, bool) {
	if f, ok := g.Library.Lookup(name); ok {
		return &f.Def.Signature, true
	}
	return g.ops.LookupOp(name)
}

// NumIDs returns a number above every node's ID, for tables indexed by ID.
func (g *Graph) NumIDs() int { return len(g.nodes) }

// NumNodes returns the number of nodes.
func (g *Graph) NumNodes() int { return len(g.byName) }

// Nodes returns the nodes in order of their IDs.
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

// Add adds a node without inputs. Its attributes are checked and completed with defaults.
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

// newNode returns a node that is in no graph yet.
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

// Input returns what data input i is connected to; its Node is nil where nothing is.
func (n *Node) Input(i int) Output { return n.in[i] }

// Inputs returns the data inputs, which must not be modified.
func (n *Node) Inputs() []Output { return n.in }

// ControlInputs returns the nodes that must run first, which must not be modified.
func (n *Node) ControlInputs() []*Node { return n.controlIn }

// OutEdges returns the edges to consumers, data and control, which must not be modified.
func (n *Node) OutEdges() []Edge { return n.out }

// Out returns output i.
func (n *Node) Out(i int) Output { return Output{n, i} }

// SetAttr sets one attribute, in a copy of the others.
func (n *Node) SetAttr(name string, v any) {
	n.Attrs = n.Attrs.Clone()
	n.Attrs[name] = v
}

// DType returns the type of the output.
func (o Output) DType() tensor.DType { return o.Node.OutTypes[o.Index] }

// IsControl reports whether the edge is a control edge.
func (e Edge) IsControl() bool { return e.SrcOut == Control }

// Copy returns a graph with copies of all nodes, under their names, in the order of their IDs; IDs
// of removed nodes are closed up. The library is shared.
func (g *Graph) Copy() *Graph { return g.CopyIf(func(*Node) bool { return true }) }

// CopyIf is Copy for the nodes that keep returns true for, and the edges between these.
func (g *Graph) CopyIf(keep func(*Node) bool) *Graph {
	return g.CopyParts(1, func(n *Node) int {
		if keep(n) {
			return 0
		}
		return -1
	})[0]
}

// CopyParts is Copy into several graphs: part returns which of the count graphs a node goes to, or
// a negative number for none. Edges between different graphs are left out.
func (g *Graph) CopyParts(count int, part func(*Node) int) []*Graph {
	out := make([]*Graph, count)
	for i := range out {
		out[i] = New(g.ops)
		out[i].Versions, out[i].Library, out[i].options = g.Versions, g.Library, g.options
	}
	copies := make([]copied, len(g.nodes)) // by ID in g
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

// copied is the copy of a node and the graph that it went to.
type copied struct {
	node *Node
	part int
}

// connect makes the edges to the copy of n that come from its own graph.
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
