package savedmodel

import (
	"slices"
	"strings"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Freeze returns the subgraph that computes the given outputs ("y" or "y:0"), with its variables
// replaced by constants, so that one file holds the whole model. values maps the names of variable
// nodes (see [VariableNodes]) to their values. Nodes keep their names. The error has the code
// InvalidArgument if the subgraph changes a variable or passes its handle to a function, and
// NotFound if an output or the value of a variable is missing. Package serve has a Freeze that
// inlines functions first.
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

// VariableNodes returns the names of the reference variables and of the handles of resource
// variables that the given outputs depend on. The error has the code NotFound if the graph lacks an
// output.
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

// needed returns the nodes that outputs depend on, in the order of the graph.
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

// A freezer replaces variables by constants.
type freezer struct {
	values  map[string]tensor.Tensor
	handles map[handle]tensor.DType // handles of variables → type of the variable
	nodes   map[string]bool         // nodes of the frozen graph
}

// A handle is an output of a node that is the handle of a variable. In the frozen graph it is the
// value of the variable.
type handle struct {
	node  string
	index int
}

// forwarding lists the operations that return their inputs unchanged, of any type.
var forwarding = map[string]bool{
	"Identity": true, "IdentityN": true, "Enter": true, "Exit": true, "NextIteration": true, "Switch": true, "_SwitchN": true, "Merge": true,
}

// findHandles adds handles and the outputs of nodes that pass them on. It reports whether it has
// found any.
func (f *freezer) findHandles(nodes []graph.NodeDef) bool {
	before := len(f.handles)
	for _, n := range nodes {
		switch {
		case n.Op == "VarHandleOp":
			f.handles[handle{n.Name, 0}] = n.Attrs.Type("dtype")
		case forwarding[n.Op]:
			f.passHandles(n)
		}
	}
	return len(f.handles) > before
}

// passHandles adds the outputs of a node that passes on its inputs.
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

// takesHandle reports whether an input is a handle, and returns the type of the variable.
func (f *freezer) takesHandle(n graph.NodeDef, i int) (tensor.DType, bool) {
	if i >= len(n.Inputs) {
		return tensor.Invalid, false
	}
	name, index := graph.ParseInput(n.Inputs[i])
	dtype, ok := f.handles[handle{name, index}]
	return dtype, ok
}

// writers lists the operations that change a reference variable.
var writers = map[string]bool{"Assign": true, "AssignAdd": true, "AssignSub": true, "ScatterUpdate": true, "ScatterAdd": true}

// valueOps maps operations on references to the same operations on values.
var valueOps = map[string]string{
	"RefIdentity": "Identity", "RefSwitch": "Switch", "RefMerge": "Merge", "RefEnter": "Enter", "RefExit": "Exit",
	"RefNextIteration": "NextIteration",
}

// freeze returns the nodes that replace a node.
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
	n.Attrs = f.withoutMissingColocations(n.Attrs)
	if forwarding[n.Op] {
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

// withoutMissingColocations returns attributes without colocation with nodes that are not in the
// frozen graph.
func (f *freezer) withoutMissingColocations(attrs opdef.Attrs) opdef.Attrs {
	groups := attrs.Strings("_class")
	kept := slices.DeleteFunc(slices.Clone(groups), func(group string) bool {
		node, colocated := strings.CutPrefix(group, "loc:@")
		return colocated && !f.nodes[node]
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

// retype changes the types of a node that passes on handles to those of the values.
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
	return status.InvalidArgumentf("node %s (op type: %s) cannot be frozen: it uses the handle of a variable or changes a variable", n.Name, n.Op)
}

// freezeUse returns the nodes that replace a node whose first input is a handle. In the frozen
// graph that input is the value of the variable.
func (f *freezer) freezeUse(n graph.NodeDef, dtype tensor.DType) ([]graph.NodeDef, error) {
	old, before := n.Attrs, []graph.NodeDef(nil)
	switch {
	case n.Op == "ReadVariableOp":
		n.Op, n.Attrs = "Identity", opdef.Attrs{"T": dtype}
	case n.Op == "VariableShape":
		n.Op, n.Attrs = "Shape", opdef.Attrs{"T": dtype, "out_type": old["out_type"]}
	case n.Op == "ResourceGather":
		indices, _ := graph.ParseInput(n.Inputs[1])
		axis := graph.NodeDef{
			// the control input places it in the frame of the indices
			Name: n.Name + "/axis", Op: "Const", Device: n.Device, Inputs: []string{"^" + indices},
			Attrs: opdef.Attrs{"dtype": tensor.Int32, "value": tensor.Scalar(int32(0))},
		}
		n.Inputs = slices.Insert(slices.Clone(n.Inputs), 2, axis.Name)
		n.Op, n.Attrs = "GatherV2", opdef.Attrs{
			"Tparams": dtype, "Tindices": old["Tindices"], "Taxis": tensor.Int32, "batch_dims": old["batch_dims"],
		}
		before = append(before, axis)
	case n.Op == "ResourceGatherNd":
		n.Op, n.Attrs = "GatherNd", opdef.Attrs{"Tparams": dtype, "Tindices": old["Tindices"]}
	default:
		return nil, cannotFreeze(n)
	}
	for name, v := range n.Attrs {
		if v == nil { // the attribute has its default
			delete(n.Attrs, name)
		}
	}
	return append(before, n), nil
}
