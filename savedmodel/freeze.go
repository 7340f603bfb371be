package savedmodel

import (
	"slices"
	"strings"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Freeze returns what the outputs ("y" or "y:0") of a graph need, with constants in the place of
// variables: a graph that can be run from one file. values has the value of every variable by the
// name of its node; see [VariableNodes]. Nodes keep their names. Variables must be read where they
// are: one whose handle is passed to a function, or that is changed on the way, is an error.
// weft.FreezeSavedModel puts the bodies of functions in the place of their calls before.
func Freeze(g *graph.Def, outputs []string, values map[string]tensor.Tensor) (*graph.Def, error) {
	needed, err := needed(g, outputs)
	if err != nil {
		return nil, err
	}
	f := &freezer{values: values, handles: map[handle]tensor.DType{}, nodes: map[string]bool{}}
	for _, n := range needed {
		f.nodes[n.Name] = true
	}
	for more := true; more; {
		more = f.findHandles(needed)
	}
	frozen := &graph.Def{Versions: g.Versions}
	for _, n := range needed {
		nodes, err := f.freeze(n)
		if err != nil {
			return nil, err
		}
		frozen.Nodes = append(frozen.Nodes, nodes...)
	}
	addFunctions(frozen, g)
	return frozen, nil
}

// VariableNodes returns the names of the nodes that are variables or handles of them, among those
// that the outputs need.
func VariableNodes(g *graph.Def, outputs []string) (references, handles []string, err error) {
	nodes, err := needed(g, outputs)
	for _, n := range nodes {
		switch n.Op {
		case "Variable", "VariableV2":
			references = append(references, n.Name)
		case "VarHandleOp":
			handles = append(handles, n.Name)
		}
	}
	return references, handles, err
}

// needed returns the nodes that outputs need, in the order of the graph.
func needed(g *graph.Def, outputs []string) ([]graph.NodeDef, error) {
	byName := make(map[string]int, len(g.Nodes))
	for i := range g.Nodes {
		byName[g.Nodes[i].Name] = i
	}
	keep := make([]bool, len(g.Nodes))
	todo := append([]string(nil), outputs...)
	for len(todo) > 0 {
		name, _ := graph.ParseInput(todo[len(todo)-1])
		todo = todo[:len(todo)-1]
		i, ok := byName[name]
		if !ok {
			return nil, status.NotFoundf("the graph has no node %s", name)
		}
		if !keep[i] {
			keep[i] = true
			todo = append(todo, g.Nodes[i].Inputs...)
		}
	}
	var nodes []graph.NodeDef
	for i := range g.Nodes {
		if keep[i] {
			nodes = append(nodes, g.Nodes[i])
		}
	}
	return nodes, nil
}

// freezer replaces variables by constants.
type freezer struct {
	values map[string]tensor.Tensor
	// handles are the outputs that are handles of variables, with the types of these. They become
	// values.
	handles map[handle]tensor.DType
	nodes   map[string]bool // that stay
}

// handle is an output of a node that is the handle of a variable.
type handle struct {
	node  string
	index int
}

// passesOn are operations whose results are one of their inputs, of any type.
var passesOn = map[string]bool{
	"Identity": true, "IdentityN": true, "Enter": true, "Exit": true, "NextIteration": true, "Switch": true, "_SwitchN": true, "Merge": true,
}

// findHandles finds handles and nodes that pass them on, and reports whether there are more than
// before.
func (f *freezer) findHandles(nodes []graph.NodeDef) bool {
	before := len(f.handles)
	for _, n := range nodes {
		switch {
		case n.Op == "VarHandleOp":
			f.handles[handle{n.Name, 0}] = n.Attrs.Type("dtype")
		case passesOn[n.Op]:
			f.passHandles(n)
		}
	}
	return len(f.handles) > before
}

// passHandles finds the outputs of a node that are what its inputs are.
func (f *freezer) passHandles(n graph.NodeDef) {
	for i := range n.Inputs {
		dtype, ok := f.takesHandle(n, i)
		if !ok {
			continue
		}
		switch n.Op {
		case "IdentityN":
			f.handles[handle{n.Name, i}] = dtype
		case "Switch":
			f.handles[handle{n.Name, 0}], f.handles[handle{n.Name, 1}] = dtype, dtype
		case "_SwitchN":
			for out := range n.Attrs.Int("num_outs") {
				f.handles[handle{n.Name, out}] = dtype
			}
		default:
			f.handles[handle{n.Name, 0}] = dtype
		}
	}
}

// takesHandle reports whether an input is a handle, and returns the type of its variable.
func (f *freezer) takesHandle(n graph.NodeDef, i int) (tensor.DType, bool) {
	if i >= len(n.Inputs) {
		return tensor.Invalid, false
	}
	name, index := graph.ParseInput(n.Inputs[i])
	dtype, ok := f.handles[handle{name, index}]
	return dtype, ok
}

// writers are operations that change a variable by reference.
var writers = map[string]bool{"Assign": true, "AssignAdd": true, "AssignSub": true, "ScatterUpdate": true, "ScatterAdd": true}

// valueOps are the operations that do with values what others do with references to variables.
var valueOps = map[string]string{
	"RefIdentity": "Identity", "RefSwitch": "Switch", "RefMerge": "Merge", "RefEnter": "Enter", "RefExit": "Exit",
	"RefNextIteration": "NextIteration",
}

// freeze returns what a node becomes.
func (f *freezer) freeze(n graph.NodeDef) ([]graph.NodeDef, error) {
	switch n.Op {
	case "Variable", "VariableV2", "VarHandleOp":
		v, ok := f.values[n.Name]
		if !ok {
			return nil, status.NotFoundf("variable %s has no value", n.Name)
		}
		n.Op, n.Attrs = "Const", opdef.Attrs{"dtype": v.DType(), "value": v}
		return []graph.NodeDef{n}, nil
	}
	if byValue := valueOps[n.Op]; byValue != "" {
		n.Op = byValue
		return []graph.NodeDef{n}, nil
	}
	n.Attrs = f.withoutStrangers(n.Attrs)
	if passesOn[n.Op] {
		f.retype(&n)
		return []graph.NodeDef{n}, nil
	}
	dtype, ok := f.takesHandle(n, 0)
	if ok {
		return f.freezeUse(n, dtype)
	}
	for i := range n.Inputs {
		_, takes := f.takesHandle(n, i)
		ok = ok || takes
	}
	if ok || writers[n.Op] {
		return nil, cannotFreeze(n)
	}
	return []graph.NodeDef{n}, nil
}

// withoutStrangers returns attributes that ask for no place beside a node that does not stay.
func (f *freezer) withoutStrangers(attrs opdef.Attrs) opdef.Attrs {
	groups := attrs.Strings("_class")
	kept := slices.DeleteFunc(slices.Clone(groups), func(group string) bool {
		node, beside := strings.CutPrefix(group, "loc:@")
		return beside && !f.nodes[node]
	})
	if len(kept) == len(groups) {
		return attrs
	}
	attrs = attrs.Clone()
	if attrs["_class"] = kept; len(kept) == 0 {
		delete(attrs, "_class")
	}
	return attrs
}

// retype gives a node that passes on handles the types of the values that they become.
func (f *freezer) retype(n *graph.NodeDef) {
	types := slices.Clone(n.Attrs.Types("T"))
	for i := range n.Inputs {
		dtype, ok := f.takesHandle(*n, i)
		if !ok {
			continue
		}
		n.Attrs = n.Attrs.Clone()
		if n.Op == "IdentityN" {
			types[i] = dtype
			n.Attrs["T"] = types
		} else {
			n.Attrs["T"] = dtype
		}
	}
}

func cannotFreeze(n graph.NodeDef) error {
	return status.InvalidArgumentf("node %s (op type: %s) cannot be frozen: it takes the handle of a variable, or changes one", n.Name, n.Op)
}

// freezeUse returns what a node becomes whose first input was the handle of a variable and is its
// value.
func (f *freezer) freezeUse(n graph.NodeDef, dtype tensor.DType) ([]graph.NodeDef, error) {
	was, before := n.Attrs, []graph.NodeDef(nil)
	switch {
	case n.Op == "ReadVariableOp":
		n.Op, n.Attrs = "Identity", opdef.Attrs{"T": dtype}
	case n.Op == "VariableShape":
		n.Op, n.Attrs = "Shape", opdef.Attrs{"T": dtype, "out_type": was["out_type"]}
	case n.Op == "ResourceGather":
		indices, _ := graph.ParseInput(n.Inputs[1])
		axis := graph.NodeDef{
			// in the frame of the indices
			Name: n.Name + "/axis", Op: "Const", Device: n.Device, Inputs: []string{"^" + indices},
			Attrs: opdef.Attrs{"dtype": tensor.Int32, "value": tensor.Scalar(int32(0))},
		}
		n.Inputs = slices.Insert(slices.Clone(n.Inputs), 2, axis.Name)
		n.Op, n.Attrs = "GatherV2", opdef.Attrs{
			"Tparams": dtype, "Tindices": was["Tindices"], "Taxis": tensor.Int32, "batch_dims": was["batch_dims"],
		}
		before = append(before, axis)
	case n.Op == "ResourceGatherNd":
		n.Op, n.Attrs = "GatherNd", opdef.Attrs{"Tparams": dtype, "Tindices": was["Tindices"]}
	default:
		return nil, cannotFreeze(n)
	}
	for name, v := range n.Attrs {
		if v == nil { // has its default
			delete(n.Attrs, name)
		}
	}
	return append(before, n), nil
}
