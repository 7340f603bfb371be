package op

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Arg is one input argument of a node: a single output, or a list for an argument that takes
// several tensors. [One] and [Many] construct it.
type Arg struct {
	one  Output
	list []Output
	many bool
}

// One returns an argument of one tensor.
func One(o Output) Arg { return Arg{one: o} }

// Many returns an argument of several tensors. It keeps the slice.
func Many(list []Output) Arg { return Arg{list: list, many: true} }

func (a Arg) outputs() []Output {
	if a.many {
		return a.list
	}
	return []Output{a.one}
}

// Add adds a node of the named operation, with one Arg for each of its input arguments. All
// builders of this package call it; programs call it for operations that have no builder.
// Attributes that follow from the types and the number of the inputs are derived unless attrs
// contains them. If the node cannot be added, Add records a build error and returns nil.
func (s *Scope) Add(opName string, args []Arg, attrs opdef.Attrs) *graph.Node {
	n, err := s.add(opName, args, attrs)
	switch {
	// a consequence of an earlier build error
	case errors.Is(err, errZeroOutput) && len(*s.b.errs) > 0:
	case err != nil:
		s.Fail(fmt.Errorf("%s: %w", opName, err))
	}
	return n
}

var errZeroOutput = errors.New("an input is the zero Output")

// check returns an error unless all outputs exist and belong to the graph of the scope.
func (s *Scope) check(outs []Output) error {
	for _, o := range outs {
		switch {
		case o.Node == nil:
			return errZeroOutput
		case s.b.g.NodeByID(o.Node.ID) != o.Node:
			return status.InvalidArgumentf("input %s is of another graph", o.Node.Name)
		case o.Index < 0 || o.Index >= len(o.Node.OutTypes):
			return status.InvalidArgumentf("node %s has %d outputs, there is no output %d", o.Node.Name, len(o.Node.OutTypes), o.Index)
		}
	}
	return nil
}

func (s *Scope) add(opName string, args []Arg, attrs opdef.Attrs) (*graph.Node, error) {
	def, ok := s.b.g.LookupOp(opName)
	if !ok {
		return nil, status.NotFoundf("no such operation")
	}
	if len(args) != len(def.Inputs) {
		return nil, status.InvalidArgumentf("takes %d arguments, got %d", len(def.Inputs), len(args))
	}
	all := opdef.Attrs{}
	maps.Copy(all, attrs)
	args, err := s.captureAll(args)
	if err != nil {
		return nil, err
	}
	for i := range def.Inputs {
		if err := s.check(args[i].outputs()); err != nil {
			return nil, err
		}
		inferAttrs(&def.Inputs[i], args[i].outputs(), all)
	}
	if s.colocate != nil {
		all["_class"] = colocationGroups(s.colocate)
	}
	n, err := s.b.g.Add(s.nodeName(opName), opName, all)
	if err != nil {
		return nil, err
	}
	if err := s.complete(n, args); err != nil {
		s.b.g.Remove(n)
		return nil, err
	}
	s.region.adopt(n)
	return n, nil
}

// nodeName returns the name of the next node, whose operation is opName.
func (s *Scope) nodeName(opName string) string {
	switch {
	case s.exact != "" && s.b.g.Node(s.exact) == nil:
		return s.exact
	case s.name != "":
		return s.b.unique(s.prefix + s.name)
	}
	return s.b.unique(s.prefix + opName)
}

// complete connects the inputs of a new node, sets its device, and infers the shapes of its
// outputs.
func (s *Scope) complete(n *graph.Node, args []Arg) error {
	i := 0
	for _, a := range args {
		for _, o := range a.outputs() {
			if err := s.b.g.Connect(o, n, i); err != nil {
				return err
			}
			i++
		}
	}
	if err := s.connectControls(n); err != nil {
		return err
	}
	if s.colocate != nil {
		n.Device = s.colocate.Device
	}
	for _, choose := range slices.Backward(s.devices) {
		if d := choose(n); d != "" {
			n.Device = d
		}
	}
	return s.b.shapes.Infer(n)
}

// colocationGroups returns the colocation groups of n, or the group named after n if it has none. A
// node that is colocated with n joins them.
func colocationGroups(n *graph.Node) []string {
	if groups := n.Attrs.Strings("_class"); len(groups) > 0 {
		return groups
	}
	return []string{"loc:@" + n.Name}
}

// inferAttrs sets the attributes that follow from the types and the number of the tensors of an
// argument.
func inferAttrs(a *opdef.Arg, outs []Output, attrs opdef.Attrs) {
	if a.TypeListAttr != "" {
		types := make([]tensor.DType, len(outs))
		for i, o := range outs {
			types[i] = o.DType().Base()
		}
		attrs[a.TypeListAttr] = types
		return
	}
	if a.NumberAttr != "" {
		attrs[a.NumberAttr] = int64(len(outs))
	}
	if _, given := attrs[a.TypeAttr]; a.TypeAttr != "" && !given && len(outs) > 0 {
		attrs[a.TypeAttr] = outs[0].DType().Base()
	}
}

// ShapeOf returns the inferred shape of an output. It is unknown if the program links no kernels,
// because the shape functions come with them.
func (s *Scope) ShapeOf(o Output) tensor.PartialShape { return s.b.shapes.Of(o) }

// Outputs returns the outputs lo to hi-1 of a node; nil for a nil node.
func Outputs(n *graph.Node, lo, hi int) []Output {
	if n == nil {
		return nil
	}
	out := make([]Output, 0, hi-lo)
	for i := lo; i < hi; i++ {
		out = append(out, n.Out(i))
	}
	return out
}

// outArg returns the outputs of a node that belong to the named output argument.
func outArg(n *graph.Node, name string) []Output {
	if n == nil {
		return nil
	}
	lo, hi, err := opdef.ArgRange(n.Op.Outputs, n.Attrs, name)
	if err != nil {
		return nil
	}
	return Outputs(n, lo, hi)
}

// out returns output i of a node, or the zero Output for a nil node.
func out(n *graph.Node, i int) Output {
	if n == nil {
		return Output{}
	}
	return n.Out(i)
}

// firstOf returns the first of outs, or the zero Output if there is none.
func firstOf(outs []Output) Output {
	if len(outs) == 0 {
		return Output{}
	}
	return outs[0]
}

// withOptions returns attrs after applying the optional attributes of a builder to them.
func withOptions[T ~func(opdef.Attrs)](attrs opdef.Attrs, optional []T) opdef.Attrs {
	for _, set := range optional {
		set(attrs)
	}
	return attrs
}
