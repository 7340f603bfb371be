package graph

import (
	"slices"
	"strings"

	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
)

// ImportOptions configures [Import].
type ImportOptions struct {
	// Internal allows names that begin with "_". Only the runtime uses such names, for nodes that a
	// master adds before it sends a graph to a worker.
	Internal bool
}

// Import checks a definition and returns its graph. Nodes keep their order in the definition, which
// need not be topological. Names of operations are looked up in the library of def, then in ops.
// Errors have TensorFlow's codes and texts.
func Import(def *Def, ops opdef.Lookup, options ImportOptions) (*Graph, error) {
	g := New(ops)
	g.options = options
	if err := g.Extend(def); err != nil {
		return nil, err
	}
	return g, nil
}

// Extend adds the nodes and functions of def to the graph, or nothing if there is an error. Inputs
// of new nodes may refer to existing nodes. Names of nodes must be unused.
func (g *Graph) Extend(def *Def) error {
	x := &extension{g: g, byName: make(map[string]*Node, len(def.Nodes)), nodes: make([]*Node, len(def.Nodes))}
	if err := def.Versions.Check(); err != nil {
		return err
	}
	var err error
	if x.library, err = g.Library.stage(def.Library, def.Gradient, g.ops); err != nil {
		return err
	}
	for _, step := range []func([]NodeDef) error{x.checkNames, x.makeNodes, x.connect} {
		if err := step(def.Nodes); err != nil {
			return err
		}
	}
	if _, err := sortTopologically(x.nodes); err != nil {
		return err
	}
	x.commit()
	g.Versions = g.Versions.merge(def.Versions)
	return nil
}

// extension holds the additions to a graph, which are invisible in it until commit.
type extension struct {
	g       *Graph
	library addition
	nodes   []*Node // new nodes in the order of the definition
	byName  map[string]*Node
	wide    wideOutputs
}

// LookupOp returns the operation or function of the given name, including new functions.
func (x *extension) LookupOp(name string) (*opdef.Op, bool) {
	if f, ok := x.library.functions[name]; ok {
		return &f.Def.Signature, true
	}
	return x.g.LookupOp(name)
}

// node returns the new or existing node of the given name, or nil.
func (x *extension) node(name string) *Node {
	if n := x.byName[name]; n != nil {
		return n
	}
	return x.g.byName[name]
}

func (x *extension) checkNames(defs []NodeDef) error {
	legal := legalExternalName
	if x.g.options.Internal {
		legal = LegalName
	}
	for i := range defs {
		name := defs[i].Name
		if !legal(name) {
			return illegalName(name)
		}
		if x.g.byName[name] != nil {
			return status.InvalidArgumentf("GraphDef argument to Extend includes node '%s', which was created by a previous call "+
				"to Create or Extend in this session.", name)
		}
		inControl := false
		for _, input := range defs[i].Inputs {
			if err := checkInput(input, legal); err != nil {
				return status.AtNode(err, name)
			}
			isControl := strings.HasPrefix(input, "^")
			if inControl && !isControl {
				return status.AtNode(status.InvalidArgumentf("All control inputs must follow all data inputs"), name)
			}
			inControl = isControl
		}
	}
	return nil
}

func (x *extension) makeNodes(defs []NodeDef) error {
	for i := range defs {
		d := &defs[i]
		if x.byName[d.Name] != nil {
			return notUnique(d.Name)
		}
		n, err := newNode(x, d.Name, d.Op, d.Attrs)
		if err != nil {
			return err
		}
		if err := x.checkSize(n, d); err != nil {
			return err
		}
		n.ID, n.Device = len(x.g.nodes)+i, d.Device
		x.nodes[i], x.byName[d.Name] = n, n
	}
	return nil
}

// checkSize returns an error if a node takes too much memory for its definition. An attribute, or
// the signature of a function that a client defines, gives a node any number of inputs, outputs and
// attributes in a few bytes.
func (x *extension) checkSize(n *Node, d *NodeDef) error {
	// connect would find it after all nodes have been made
	if len(n.InTypes) > len(d.Inputs)+narrow {
		return tooFewInputs(n, countData(d.Inputs))
	}
	if err := takeAttrs(n.Name, len(n.Attrs)-len(d.Attrs)); err != nil {
		return err
	}
	return x.wide.add(n.Name, len(n.OutTypes))
}

// countData returns the number of data inputs, which come before the control inputs.
func countData(inputs []string) int {
	if i := slices.IndexFunc(inputs, func(s string) bool { return strings.HasPrefix(s, "^") }); i >= 0 {
		return i
	}
	return len(inputs)
}

func tooFewInputs(n *Node, have int) error {
	return status.InvalidArgumentf("NodeDef expected inputs '%s' do not match %d inputs specified; %v; NodeDef: {{node %s}}",
		opdef.JoinTypes(n.InTypes), have, n.Op, n.Name)
}

// connect sets the inputs of the new nodes. commit adds the edges to their sources.
func (x *extension) connect(defs []NodeDef) error {
	for i, n := range x.nodes {
		inputs := defs[i].Inputs
		numData := 0
		for _, input := range inputs {
			name, index := ParseInput(input)
			src := x.node(name)
			if src == nil {
				return status.InvalidArgumentf("Node '%s': Unknown input node '%s'", n.Name, input)
			}
			if index == Control {
				n.controlIn = append(n.controlIn, src)
				continue
			}
			if err := checkEdge(Output{src, index}, n, numData); err != nil {
				return err
			}
			n.in[numData] = Output{src, index}
			numData++
		}
		if numData != len(n.in) {
			return tooFewInputs(n, numData)
		}
		n.controlIn = unique(n.controlIn)
	}
	return nil
}

// unique returns nodes without duplicates, in the order of first occurrence.
func unique(nodes []*Node) []*Node {
	if len(nodes) < indexFrom {
		out := nodes[:0]
		for _, n := range nodes {
			if !slices.Contains(out, n) {
				out = append(out, n)
			}
		}
		return out
	}
	seen := make(map[*Node]bool, len(nodes))
	return slices.DeleteFunc(nodes, func(n *Node) bool {
		repeated := seen[n]
		seen[n] = true
		return repeated
	})
}

// commit adds everything to the graph. It cannot fail.
func (x *extension) commit() {
	x.g.Library.commit(x.library)
	for _, n := range x.nodes {
		x.g.insert(n)
		for i, in := range n.in {
			in.Node.addOut(Edge{in.Node, in.Index, n, i})
		}
		for _, src := range n.controlIn {
			src.addOut(Edge{src, Control, n, Control})
		}
	}
}
