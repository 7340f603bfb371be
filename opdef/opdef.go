// Package opdef says what an operation is: its arguments, attributes, flags and shape rule. It is
// data only: how an operation is computed is the business of package kernel, and where it stands in
// a graph that of package graph.
//
// A [Def] is written by hand, once per operation, in TensorFlow's registration language:
//
//	opdef.Def{
//		Name:  "MatMul",
//		Doc:   "Multiplies matrix a [m,k] by matrix b [k,n].",
//		In:    []string{"a: T", "b: T"},
//		Out:   []string{"product: T"},
//		Attrs: []string{"transpose_a: bool = false", "transpose_b: bool = false", "T: {float32, float64}"},
//		Shape: matMulShape,
//	}
//
// An argument is "name: TYPE", "name: N * TYPE", "name: TYPE_LIST_ATTR", "name: Ref(TYPE)" or
// "name: Ref(N * TYPE)", where TYPE is a dtype or a type attribute. An attribute is "name: KIND",
// optionally with ">= minimum" and "= default"; KIND is one of string, int, float, bool, type,
// shape, tensor, func, a set of allowed values {…}, or list(KIND). The sets of types numbertype,
// realnumbertype and quantizedtype have names. [Def.Parse] turns it into an [Op].
package opdef

import (
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Def is an operation as it is written in source code.
type Def struct {
	Name  string
	Doc   string // what it computes, for the builders and the list of operations
	In    []string
	Out   []string
	Attrs []string
	Shape ShapeFn // required, except that an operation without outputs needs none

	// has an effect or depends on more than its inputs: never folded or merged with its like
	Stateful            bool
	Commutative         bool
	Aggregate           bool // adds any number of inputs of one type
	AllowsUninitialized bool // takes references to variables without a value
	Distributed         bool // talks to other tasks: its Unavailable errors mean a lost peer
}

// Op is a parsed Def.
type Op struct {
	Name    string
	Doc     string
	Inputs  []Arg
	Outputs []Arg
	Attrs   []Attr
	Shape   ShapeFn

	Stateful            bool
	Commutative         bool
	Aggregate           bool
	AllowsUninitialized bool
	Distributed         bool

	// ControlOutputs are the named control outputs that a function has.
	ControlOutputs []string
}

// Arg is an input or output argument, which stands for one tensor or, with NumberAttr or
// TypeListAttr, for several.
type Arg struct {
	Name         string
	Doc          string
	DType        tensor.DType // Invalid if an attribute gives the type
	TypeAttr     string       // attribute of kind type
	NumberAttr   string       // attribute of kind int: that many tensors of one type
	TypeListAttr string       // attribute of kind list(type): one tensor of each
	IsRef        bool
}

// Attr is an attribute of an operation.
type Attr struct {
	Name string
	Doc  string
	// "string", "int", "float", "bool", "type", "shape", "tensor", "func", or "list(…)" of one of
	// these
	Kind    string
	Default any // nil if the attribute must be given
	Types   []tensor.DType
	Strings []string // allowed values of kind string or list(string); nil for any
	Min     int64    // least value, or least length of a list, if HasMin
	HasMin  bool
}

// Func is the value of an attribute of kind func: a function of the graph's library and the
// attributes to instantiate it with.
type Func struct {
	Name  string
	Attrs Attrs
}

// Placeholder is the value "$name" that an attribute has inside the body of a function that is not
// instantiated yet.
type Placeholder string

// Lookup finds the operation of a name. It is implemented by the registry of kernels, by the
// client's table and by graphs with function libraries.
type Lookup interface {
	LookupOp(name string) (*Op, bool)
}

// Attr returns the attribute of the given name, or nil.
func (o *Op) Attr(name string) *Attr {
	for i := range o.Attrs {
		if o.Attrs[i].Name == name {
			return &o.Attrs[i]
		}
	}
	return nil
}

// InputTypes returns the type of every input tensor for the given attributes; references have
// reference types.
func (o *Op) InputTypes(attrs Attrs) ([]tensor.DType, error) { return argTypes(o, o.Inputs, attrs) }

// OutputTypes returns the type of every output tensor for the given attributes; references have
// reference types.
func (o *Op) OutputTypes(attrs Attrs) ([]tensor.DType, error) { return argTypes(o, o.Outputs, attrs) }

func argTypes(o *Op, args []Arg, attrs Attrs) ([]tensor.DType, error) {
	out := make([]tensor.DType, 0, len(args))
	for i := range args {
		types, err := args[i].Types(attrs)
		if err != nil {
			return nil, status.Errorf(status.CodeOf(err), "%s: %w", o.Name, err)
		}
		out = append(out, types...)
	}
	return out, nil
}

// maxArgTensors bounds how many tensors one argument may stand for.
const maxArgTensors = 1 << 20

// Types returns the types of the tensors that the argument stands for with the given attributes.
func (a *Arg) Types(attrs Attrs) ([]tensor.DType, error) {
	if a.TypeListAttr != "" {
		types, ok := attrs[a.TypeListAttr].([]tensor.DType)
		if !ok {
			return nil, status.InvalidArgumentf("argument '%s' needs the list(type) attr '%s'", a.Name, a.TypeListAttr)
		}
		return types, nil
	}
	dtype := a.DType
	if a.TypeAttr != "" {
		t, ok := attrs[a.TypeAttr].(tensor.DType)
		if !ok {
			return nil, status.InvalidArgumentf("argument '%s' needs the type attr '%s'", a.Name, a.TypeAttr)
		}
		dtype = t
	}
	if a.IsRef {
		dtype = dtype.Ref()
	}
	n := int64(1)
	if a.NumberAttr != "" {
		v, ok := attrs[a.NumberAttr].(int64)
		if !ok || v < 0 {
			return nil, status.InvalidArgumentf("argument '%s' needs the int attr '%s'", a.Name, a.NumberAttr)
		}
		if v > maxArgTensors {
			return nil, status.InvalidArgumentf("Number of outputs is too big: %d", v)
		}
		n = v
	}
	types := make([]tensor.DType, n)
	for i := range types {
		types[i] = dtype
	}
	return types, nil
}

// ArgRange returns the positions lo to hi of the tensors that the named argument of args stands
// for.
func ArgRange(args []Arg, attrs Attrs, name string) (lo, hi int, err error) {
	for i := range args {
		types, err := args[i].Types(attrs)
		if err != nil {
			return 0, 0, err
		}
		if args[i].Name == name {
			return lo, lo + len(types), nil
		}
		lo += len(types)
	}
	return 0, 0, status.InvalidArgumentf("no argument '%s'", name)
}
