package graph

import (
	"maps"
	"slices"

	"github.com/weft-ml/weft/opdef"
)

// Def is the definition of a graph as in a file or a message, TensorFlow's GraphDef. It may be
// invalid; [Import] checks it.
type Def struct {
	Nodes    []NodeDef
	Library  []FunctionDef     // functions that nodes may call
	Gradient map[string]string // name of the gradient function, by name of the function
	Versions Versions
}

// NodeDef is the definition of a node.
type NodeDef struct {
	Name string
	Op   string // name of an operation or function
	// data inputs, then control inputs: "node" for output 0, "node:1" for output 1, "^node" for a
	// control input
	Inputs []string
	Device string // requested device: a full or partial name
	Attrs  opdef.Attrs
}

// FunctionDef is the definition of a function of a library. The inputs of its nodes have the forms
// "arg", "node:out_arg:index" and "^node".
type FunctionDef struct {
	Signature  opdef.Op            // name, arguments, results and attributes
	Nodes      []NodeDef           // body
	Ret        map[string]string   // input string of the value, by output argument
	ControlRet map[string]string   // name of the node, by control output
	Attrs      opdef.Attrs         // attributes of the function itself
	ArgAttrs   map[int]opdef.Attrs // attributes of the _Arg nodes, by position of the argument

	// OldOutputs is set for a function of a graph of TensorFlow 0.12 or earlier: the names of the
	// outputs of each node. The nodes have no names. Their inputs and the results are arguments or
	// such outputs. Import converts the function to the current form.
	OldOutputs [][]string
}

// Versions are the version of the program that produced a graph, and the versions of the programs
// that can read it.
type Versions struct {
	Producer     int   // version of the program that produced the graph
	MinConsumer  int   // oldest version that can read it
	BadConsumers []int // versions that cannot read it
}

// Def returns the definition of the graph. Nodes are in the order of their IDs, with all
// attributes; functions are sorted by name. The device of a node is the assigned one, or else the
// requested one. Unconnected inputs are omitted.
func (g *Graph) Def() *Def {
	def := &Def{Versions: g.Versions, Nodes: make([]NodeDef, 0, g.NumNodes())}
	for n := range g.Nodes() {
		def.Nodes = append(def.Nodes, n.Def())
	}
	def.Library, def.Gradient = g.Library.defs()
	return def
}

// Def returns the definition of the node.
func (n *Node) Def() NodeDef {
	d := NodeDef{Name: n.Name, Op: n.Op.Name, Device: n.Device, Attrs: n.Attrs}
	if n.Assigned != "" {
		d.Device = n.Assigned
	}
	if k := len(n.in) + len(n.controlIn); k > 0 {
		d.Inputs = make([]string, 0, k)
	}
	for _, in := range n.in {
		if in.Node != nil {
			d.Inputs = append(d.Inputs, in.String())
		}
	}
	for _, src := range n.controlIn {
		d.Inputs = append(d.Inputs, "^"+src.Name)
	}
	return d
}

func (l *Library) defs() ([]FunctionDef, map[string]string) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	var defs []FunctionDef
	for _, name := range slices.Sorted(maps.Keys(l.functions)) {
		defs = append(defs, l.functions[name].Def)
	}
	return defs, maps.Clone(l.gradient)
}
