package graph

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
)

// FunctionDef returns a graph as the definition of a function. Its _Arg nodes are the arguments and
// its _Retval nodes the results; both must be numbered from 0 without gaps. All stateful nodes are
// control outputs, so that a call executes them.
func (g *Graph) FunctionDef(name string) (FunctionDef, error) {
	def := FunctionDef{
		Signature: opdef.Op{Name: name}, Ret: map[string]string{}, ControlRet: map[string]string{}, ArgAttrs: map[int]opdef.Attrs{},
	}
	var args, rets []*Node
	for n := range g.Nodes() {
		switch n.Op.Name {
		case "_Arg":
			args = append(args, n)
		case "_Retval":
			rets = append(rets, n)
		default:
			def.Signature.Stateful = def.Signature.Stateful || n.Op.Stateful
		}
	}
	byIndex := func(a, b *Node) int { return a.Attrs.Int("index") - b.Attrs.Int("index") }
	slices.SortFunc(args, byIndex)
	slices.SortFunc(rets, byIndex)
	names := map[*Node]string{} // of the arguments
	inputs := functionInputs{args: names, last: map[*Node][]int{}}
	for i, n := range args {
		if n.Attrs.Int("index") != i {
			return def, status.InvalidArgumentf("the arguments of function %s are not numbered without gaps", name)
		}
		names[n] = fmt.Sprintf("part_arg_%d", i)
		def.Signature.Inputs = append(def.Signature.Inputs, opdef.Arg{Name: names[n], DType: n.OutTypes[0].Base()})
		attrs := n.Attrs.Clone()
		maps.DeleteFunc(attrs, func(name string, _ any) bool { return !strings.HasPrefix(name, "_") })
		if len(attrs) > 0 {
			def.ArgAttrs[i] = attrs
		}
	}
	for n := range g.Nodes() {
		if n.Op.Name == "_Arg" || n.Op.Name == "_Retval" {
			continue
		}
		d := n.Def()
		d.Inputs = nil
		for i := range n.NumInputs() {
			in, err := inputs.of(n.Input(i))
			if err != nil {
				return def, status.AtNode(err, n.Name)
			}
			d.Inputs = append(d.Inputs, in)
		}
		for _, src := range n.ControlInputs() {
			if names[src] == "" { // an argument has a value before the call
				d.Inputs = append(d.Inputs, "^"+src.Name)
			}
		}
		def.Nodes = append(def.Nodes, d)
		if n.Op.Stateful {
			control := "control_" + strconv.Itoa(len(def.ControlRet))
			def.ControlRet[control] = n.Name
			def.Signature.ControlOutputs = append(def.Signature.ControlOutputs, control)
		}
	}
	for i, n := range rets {
		if n.Attrs.Int("index") != i {
			return def, status.InvalidArgumentf("the results of function %s are not numbered without gaps", name)
		}
		out := fmt.Sprintf("ret_%d", i)
		def.Signature.Outputs = append(def.Signature.Outputs, opdef.Arg{Name: out, DType: n.InTypes[0].Base()})
		in, err := inputs.of(n.Input(0))
		if err != nil {
			return def, err
		}
		def.Ret[out] = in
	}
	return def, nil
}

// functionInputs returns outputs of nodes in the form of function bodies: "arg", or
// "node:out_arg:index".
type functionInputs struct {
	args map[*Node]string // names of the arguments
	// last output of each output argument of the nodes with many
	last map[*Node][]int
}

func (f *functionInputs) of(o Output) (string, error) {
	if o.Node == nil {
		return "", status.InvalidArgumentf("an input is not connected")
	}
	if name := f.args[o.Node]; name != "" {
		return name, nil
	}
	last, ok := f.last[o.Node]
	if !ok {
		var err error
		if last, err = lastOutputs(o.Node); err != nil {
			return "", err
		}
		if len(o.Node.OutTypes) > narrow {
			f.last[o.Node] = last
		}
	}
	// an argument without outputs has the last one of that before it
	i, _ := slices.BinarySearch(last, o.Index)
	if i == len(last) {
		return "", status.Internalf("node %s has no output %d", o.Node.Name, o.Index)
	}
	first := 0
	if i > 0 {
		first = last[i-1] + 1
	}
	return fmt.Sprintf("%s:%s:%d", o.Node.Name, o.Node.Op.Outputs[i].Name, o.Index-first), nil
}

// lastOutputs returns the index of the last output of each output argument of a node.
func lastOutputs(n *Node) ([]int, error) {
	last := make([]int, len(n.Op.Outputs))
	end := 0
	for i := range n.Op.Outputs {
		types, err := n.Op.Outputs[i].Types(n.Attrs)
		if err != nil {
			return nil, err
		}
		end += len(types)
		last[i] = end - 1
	}
	return last, nil
}
