package graph

import (
	"slices"
	"strings"

	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
)

// renewed returns functions with those in the form of TensorFlow 0.12 converted to the current
// form. Names of operations are looked up among the functions, in the library, and in ops.
func (l *Library) renewed(functions []FunctionDef, ops opdef.Lookup) ([]FunctionDef, error) {
	isOld := func(f FunctionDef) bool { return f.OldOutputs != nil }
	if !slices.ContainsFunc(functions, isOld) {
		return functions, nil
	}
	out := slices.Clone(functions)
	byName := make(map[string]*opdef.Op, len(functions))
	for i := range slices.Backward(functions) { // the first of a name counts
		byName[functions[i].Signature.Name] = &functions[i].Signature
	}
	lookup := func(name string) (*opdef.Op, bool) {
		if sig := byName[name]; sig != nil {
			return sig, true
		}
		if f, ok := l.Lookup(name); ok {
			return &f.Def.Signature, true
		}
		return ops.LookupOp(name)
	}
	for i := range out {
		if isOld(out[i]) {
			var err error
			if out[i], err = renew(out[i], lookup); err != nil {
				return nil, status.Errorf(status.CodeOf(err), "function '%s': %w", out[i].Signature.Name, err)
			}
		}
	}
	return out, nil
}

// oldOutput is an output of a node of a function in the old form.
type oldOutput struct {
	node   string
	ref    string // input string of all its tensors
	isList bool   // whether its number of tensors depends on attributes
}

// renew converts a function to the current form. The name of a node is that of its first output.
func renew(f FunctionDef, lookup func(name string) (*opdef.Op, bool)) (FunctionDef, error) {
	if len(f.OldOutputs) != len(f.Nodes) {
		return f, status.InvalidArgumentf("%d nodes, but the outputs of %d", len(f.Nodes), len(f.OldOutputs))
	}
	outputs := map[string]oldOutput{}
	nodes := make([]NodeDef, len(f.Nodes))
	for i, n := range f.Nodes {
		rets := f.OldOutputs[i]
		if len(rets) == 0 {
			return f, status.InvalidArgumentf("node %d (%s) has no output", i, n.Op)
		}
		op, ok := lookup(n.Op)
		if !ok {
			return f, notRegistered(n.Op, rets[0])
		}
		if len(op.Outputs) > 0 && len(rets) != len(op.Outputs) {
			return f, status.InvalidArgumentf("node '%s' has %d outputs, not the %d of %v", rets[0], len(rets), len(op.Outputs), op)
		}
		n.Name = rets[0]
		for k, ret := range rets {
			if _, twice := outputs[ret]; twice {
				return f, status.InvalidArgumentf("Duplicated ret name: %s", ret)
			}
			o := oldOutput{node: n.Name}
			if len(op.Outputs) > 0 {
				arg := &op.Outputs[k]
				o.ref, o.isList = n.Name+":"+arg.Name, arg.NumberAttr != "" || arg.TypeListAttr != ""
			}
			outputs[ret] = o
		}
		nodes[i] = n
	}
	renamed := func(input string) string {
		if dep, isControl := strings.CutPrefix(input, "^"); isControl {
			if o, ok := outputs[dep]; ok {
				return "^" + o.node
			}
			return input
		}
		name, index, _ := strings.Cut(input, ":")
		o, ok := outputs[name]
		switch {
		case !ok:
			return input // an argument
		case index != "":
			return o.ref + ":" + index
		case o.isList:
			return o.ref
		}
		return o.ref + ":0"
	}
	for i := range nodes {
		inputs := make([]string, len(nodes[i].Inputs))
		for k, input := range nodes[i].Inputs {
			inputs[k] = renamed(input)
		}
		nodes[i].Inputs = inputs
	}
	ret := map[string]string{}
	for i := range f.Signature.Outputs {
		name := f.Signature.Outputs[i].Name
		ret[name] = renamed(name)
	}
	f.Nodes, f.Ret, f.OldOutputs = nodes, ret, nil
	return f, nil
}
