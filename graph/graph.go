// Package graph holds the graphs that clients build and that the passes of the master rewrite: nodes, edges, names,
// versions and function libraries.
//
// A [Graph] is always well formed: names are unique and legal, every input that is connected has the type that its
// operation asks for, and attributes are complete and allowed. A [Def] is the same thing written down, and may be wrong
// in every way; [Import] makes the one from the other and [Graph.Def] the reverse.
//
// Graphs are not safe for concurrent modification. Passes copy what they rewrite.
package graph

import (
	"iter"
	"maps"
	"slices"

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

	ops    opdef.Lookup
	nodes  []*Node // by ID; nil where a node was removed
	byName map[string]*Node
}

// Node is one operation of a graph. Its fields are read freely and changed only as their comments say.
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
	controlIn []*Node
	out       []Edge // data and control edges to consumers
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

// New returns an empty graph whose operations are looked up in ops; functions of its library come first.
func New(ops opdef.Lookup) *Graph {
	g := &Graph{ops: ops, byName: map[string]*Node{}}
	g.Library = &Library{functions: map[string]*Function{}, gradient: map[string]string{}}
	return g
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
		return nil, status.InvalidArgumentf("Illegal op name '%s'", name)
	}
	if g.byName[name] != nil {
		return nil, status.InvalidArgumentf("Node '%s' is not unique", name)
	}
	def, ok := g.LookupOp(op)
	if !ok {
		return nil, status.NotFoundf("Op type not registered '%s' in binary running on this task, used by node '%s'. "+
			"Make sure the Op and Kernel are registered in the binary running in this process.", op, name)
	}
	attrs, err := def.CheckAttrs(name, attrs)
	if err != nil {
		return nil, err
	}
	n := &Node{ID: len(g.nodes), Name: name, Op: def, Attrs: attrs}
	if n.InTypes, err = def.InputTypes(attrs); err != nil {
		return nil, status.AtNode(err, name)
	}
	if n.OutTypes, err = def.OutputTypes(attrs); err != nil {
		return nil, status.AtNode(err, name)
	}
	n.in = make([]Output, len(n.InTypes))
	g.nodes = append(g.nodes, n)
	g.byName[name] = n
	return n, nil
}

// Connect makes output src the data input of dst at position in. The types must agree, except that a reference may be
// taken where a value is wanted. An input that is connected already is connected anew.
func (g *Graph) Connect(src Output, dst *Node, in int) error {
	if in < 0 || in >= len(dst.in) {
		return status.InvalidArgumentf("Node '%s' has %d inputs, not %d", dst.Name, len(dst.in), in+1)
	}
	if src.Index < 0 || src.Index >= len(src.Node.OutTypes) {
		return status.InvalidArgumentf("Node '%s' (type: '%s', num of outputs: %d) does not have output %d",
			src.Node.Name, src.Node.Op.Name, len(src.Node.OutTypes), src.Index)
	}
	have, want := src.Node.OutTypes[src.Index], dst.InTypes[in]
	if have != want && (want.IsRef() || have.Base() != want) {
		return status.InvalidArgumentf("Input %d of node %s was passed %v from %s:%d incompatible with expected %v.",
			in, dst.Name, have, src.Node.Name, src.Index, want)
	}
	if old := dst.in[in]; old.Node != nil {
		old.Node.removeOut(Edge{old.Node, old.Index, dst, in})
	}
	dst.in[in] = src
	src.Node.out = append(src.Node.out, Edge{src.Node, src.Index, dst, in})
	return nil
}

// ConnectControl makes dst run only after src. A second edge between the same nodes is not added.
func (g *Graph) ConnectControl(src, dst *Node) {
	if slices.Contains(dst.controlIn, src) {
		return
	}
	dst.controlIn = append(dst.controlIn, src)
	src.out = append(src.out, Edge{src, Control, dst, Control})
}

// DisconnectControl removes a control edge, if there is one.
func (g *Graph) DisconnectControl(src, dst *Node) {
	if i := slices.Index(dst.controlIn, src); i >= 0 {
		dst.controlIn = slices.Delete(dst.controlIn, i, i+1)
		src.removeOut(Edge{src, Control, dst, Control})
	}
}

// Remove removes a node and all edges to and from it; inputs it was connected to stay open.
func (g *Graph) Remove(n *Node) {
	for i, in := range n.in {
		if in.Node != nil {
			in.Node.removeOut(Edge{in.Node, in.Index, n, i})
		}
	}
	for _, c := range n.controlIn {
		c.removeOut(Edge{c, Control, n, Control})
	}
	for _, e := range n.out {
		switch {
		case e.Dst == n:
		case e.SrcOut == Control:
			if i := slices.Index(e.Dst.controlIn, n); i >= 0 {
				e.Dst.controlIn = slices.Delete(e.Dst.controlIn, i, i+1)
			}
		default:
			e.Dst.in[e.DstIn] = Output{}
		}
	}
	n.in, n.controlIn, n.out = nil, nil, nil
	g.nodes[n.ID] = nil
	delete(g.byName, n.Name)
}

func (n *Node) removeOut(e Edge) {
	if i := slices.Index(n.out, e); i >= 0 {
		n.out = slices.Delete(n.out, i, i+1)
	}
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

// Copy returns a graph with copies of all nodes, under their names, in the order of their IDs; IDs of removed nodes are
// closed up. The library is shared.
func (g *Graph) Copy() *Graph { return g.CopyIf(func(*Node) bool { return true }) }

// CopyIf is Copy for the nodes that keep returns true for, and the edges between these.
func (g *Graph) CopyIf(keep func(*Node) bool) *Graph {
	out := New(g.ops)
	out.Versions, out.Library = g.Versions, g.Library
	for n := range g.Nodes() {
		if !keep(n) {
			continue
		}
		c := &Node{
			ID: len(out.nodes), Name: n.Name, Op: n.Op, Attrs: n.Attrs, Device: n.Device, Assigned: n.Assigned,
			InTypes: n.InTypes, OutTypes: n.OutTypes, in: make([]Output, len(n.in)),
		}
		out.nodes = append(out.nodes, c)
		out.byName[c.Name] = c
	}
	for _, c := range out.nodes {
		n := g.byName[c.Name]
		for i, in := range n.in {
			if in.Node == nil {
				continue
			}
			if src := out.byName[in.Node.Name]; src != nil {
				c.in[i] = Output{src, in.Index}
				src.out = append(src.out, Edge{src, in.Index, c, i})
			}
		}
		for _, src := range n.controlIn {
			if s := out.byName[src.Name]; s != nil {
				out.ConnectControl(s, c)
			}
		}
	}
	return out
}

// Library holds the functions of a graph. It is shared between copies of a graph and only grows.
type Library struct {
	functions map[string]*Function
	gradient  map[string]string
}

// Function is a function of a library.
type Function struct {
	Def FunctionDef
}

// Lookup returns the function of the given name.
func (l *Library) Lookup(name string) (*Function, bool) {
	f, ok := l.functions[name]
	return f, ok
}

// Gradient returns the name of the function that is the gradient of the given one, or "".
func (l *Library) Gradient(name string) string { return l.gradient[name] }

// Names returns the names of all functions in order.
func (l *Library) Names() []string { return slices.Sorted(maps.Keys(l.functions)) }
