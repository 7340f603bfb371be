package graph

import "github.com/weft-ml/weft/opdef"

// Def is a graph as it is written down, in a file or a message: TensorFlow's GraphDef. It may be wrong in every way;
// [Import] finds out.
type Def struct {
	Nodes    []NodeDef
	Library  []FunctionDef
	Gradient map[string]string // name of a function → name of the function that is its gradient
	Versions Versions
}

// NodeDef is a node as it is written down.
type NodeDef struct {
	Name   string
	Op     string
	Inputs []string // "node", "node:1" for an output other than the first, "^node" for a control input; data inputs first
	Device string   // requested: a full or partial name
	Attrs  opdef.Attrs
}

// FunctionDef is a function of a graph's library as it is written down. Inputs of its nodes are written "arg",
// "node:out_arg:index" or "^node".
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
