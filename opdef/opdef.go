// Package opdef defines operations: their arguments, attributes, flags and shape functions. It
// contains no kernels (see package kernel) and no graphs (see package graph).
//
// A [Def] is the definition of an operation in TensorFlow's registration language:
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
// optionally with ">= minimum" and "= default". KIND is string, int, float, bool, type, shape,
// tensor, func, a set of allowed values {…}, or list(KIND). numbertype, realnumbertype and
// quantizedtype are named sets of types. [Def.Parse] converts a Def to an [Op].
package opdef

import (
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Def is the definition of an operation in source code.
type Def struct {
	Name  string
	Doc   string   // description, for the builders and the list of operations
	In    []string // input arguments
	Out   []string // output arguments
	Attrs []string // attributes
	Shape ShapeFn  // shape function; required unless the operation has no outputs

	// has side effects or depends on more than its inputs: never folded or merged with equal nodes
	Stateful            bool
	Commutative         bool // the order of the two inputs does not matter
	Aggregate           bool // sums any number of inputs of one type
	AllowsUninitialized bool // accepts references to uninitialized variables
	// communicates with other tasks: its Unavailable errors mean that a peer is lost
	Distributed bool
	// what it does besides computing its outputs; [Def.Parse] adds State if it is stateful
	Class Class
}

// Op is a parsed [Def], with the same meaning of its fields, or the signature of a function.
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
	Class               Class

	// ControlOutputs are the names of the control outputs of a function.
	ControlOutputs []string
}

// Arg is an input or output argument. It consists of one tensor, or of several if NumberAttr or
// TypeListAttr is set.
type Arg struct {
	Name         string
	Doc          string
	DType        tensor.DType // Invalid if an attribute determines the type
	TypeAttr     string       // name of an attribute of kind type
	NumberAttr   string       // name of an attribute of kind int, the number of tensors
	TypeListAttr string       // name of an attribute of kind list(type), the types of the tensors
	IsRef        bool         // a reference to a variable
}

// Attr is an attribute of an operation.
type Attr struct {
	Name string
	Doc  string
	// "string", "int", "float", "bool", "type", "shape", "tensor", "func", or "list(…)" of one of
	// these
	Kind    string
	Default any            // nil if the attribute is required
	Types   []tensor.DType // allowed values of kind type or list(type); nil for any
	Strings []string       // allowed values of kind string or list(string); nil for any
	Min     int64          // minimum value, or minimum length of a list, if HasMin
	HasMin  bool
}

// Func is the value of an attribute of kind func: the name of a function in the library of the
// graph, and the attributes for its instantiation.
type Func struct {
	Name  string
	Attrs Attrs
}

// Placeholder is the value of an attribute in the body of a function before instantiation: the name
// of the attribute of the function that replaces it, written "$name".
type Placeholder string

// Lookup finds operations by name. The registry of kernels, [Table], and graphs with function
// libraries implement it.
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

// InputTypes returns the types of all input tensors for the given attributes. References have
// reference types. It fails with InvalidArgument if an attribute is missing.
func (o *Op) InputTypes(attrs Attrs) ([]tensor.DType, error) { return argTypes(o, o.Inputs, attrs) }

// OutputTypes returns the types of all output tensors for the given attributes. References have
// reference types. It fails with InvalidArgument if an attribute is missing.
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

// maxArgTensors is the maximum number of tensors of one argument.
const maxArgTensors = 1 << 20

// Types returns the types of the tensors of the argument for the given attributes. It fails with
// InvalidArgument if an attribute is missing or the number of tensors is too large.
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

// ArgRange returns the range of the tensors of the named argument, lo to hi-1, among the tensors of
// args. It fails with InvalidArgument if there is no such argument.
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
