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
			in, err := functionInput(n.Input(i), names)
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
		in, err := functionInput(n.Input(0), names)
		if err != nil {
			return def, err
		}
		def.Ret[out] = in
	}
	return def, nil
}

// functionInput returns an output of a node in the form of function bodies: "arg", or
// "node:out_arg:index".
func functionInput(o Output, args map[*Node]string) (string, error) {
	if o.Node == nil {
		return "", status.InvalidArgumentf("an input is not connected")
	}
	if name := args[o.Node]; name != "" {
		return name, nil
	}
	first := 0
	for i := range o.Node.Op.Outputs {
		arg := &o.Node.Op.Outputs[i]
		types, err := arg.Types(o.Node.Attrs)
		if err != nil {
			return "", err
		}
		if o.Index < first+len(types) {
			return fmt.Sprintf("%s:%s:%d", o.Node.Name, arg.Name, o.Index-first), nil
		}
		first += len(types)
	}
	return "", status.Internalf("node %s has no output %d", o.Node.Name, o.Index)
}
