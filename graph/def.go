package graph

import (
	"maps"
	"slices"

	"github.com/weft-ml/weft/opdef"
)

// Def is a graph as it is written down, in a file or a message: TensorFlow's GraphDef. It may be
// wrong in every way; [Import] finds out.
type Def struct {
	Nodes    []NodeDef
	Library  []FunctionDef
	Gradient map[string]string // name of a function → name of the function that is its gradient
	Versions Versions
}

// NodeDef is a node as it is written down.
type NodeDef struct {
	Name string
	Op   string
	// "node", "node:1" for an output other than the first, "^node" for a control input; data inputs
	// first
	Inputs []string
	Device string // requested: a full or partial name
	Attrs  opdef.Attrs
}

// FunctionDef is a function of a graph's library as it is written down. Inputs of its nodes are
// written "arg", "node:out_arg:index" or "^node".
type FunctionDef struct {
	Signature  opdef.Op
	Nodes      []NodeDef
	Ret        map[string]string // output argument → value in the body
	ControlRet map[string]string // control output → node in the body
	Attrs      opdef.Attrs
	ArgAttrs   map[int]opdef.Attrs
}

// Versions say who made a graph and who can read it.
type Versions struct {
	Producer     int
	MinConsumer  int
	BadConsumers []int
}

// Def writes the graph down: nodes in the order of their IDs with complete attributes, the device
// they are assigned to or else the one they request, and functions in the order of their names.
// Inputs that are not connected are left out.
func (g *Graph) Def() *Def {
	def := &Def{Versions: g.Versions, Nodes: make([]NodeDef, 0, g.NumNodes())}
	for n := range g.Nodes() {
		def.Nodes = append(def.Nodes, n.Def())
	}
	def.Library, def.Gradient = g.Library.defs()
	return def
}

// Def writes the node down.
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
