package train

import (
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
)

// Variable is a tensor that keeps its value on a device from step to step. Its methods add nodes to
// the graph.
type Variable struct {
	Name   string
	DType  tensor.DType
	Shape  tensor.Shape
	Handle op.Output // a reference (Ref(DType)), or a resource handle if Resource
	// the value, read at an unspecified time in each step; see [Variable.Read]
	Value       op.Output
	Initial     op.Output   // the value that Initializer assigns
	Initializer *graph.Node // assigns the initial value; nil after a build error
	Resource    bool        // Handle is a resource handle
	Trainable   bool        // optimizers update the variable
	// slice that the variable holds of a partitioned one; nil for a whole variable
	Part *Part
}

// VariableOption configures a variable.
type VariableOption func(*variableConfig)

type variableConfig struct {
	untrained bool
	resource  bool
	local     bool
	container string
	part      *Part
}

// NotTrainable excludes the variable from [TrainableVariables].
func NotTrainable() VariableOption { return func(c *variableConfig) { c.untrained = true } }

// Resource makes the variable a resource variable. Each read of it returns a consistent value, and
// values of other shapes may be assigned to it.
func Resource() VariableOption { return func(c *variableConfig) { c.resource = true } }

// Local makes the variable belong to one process. It is not trained or saved, and is added to
// [LocalVariables] instead of [GlobalVariables].
func Local() VariableOption {
	return func(c *variableConfig) { c.local, c.untrained = true, true }
}

// Container puts the variable into the named container of its task. A container can be reset
// separately.
func Container(name string) VariableOption {
	return func(c *variableConfig) { c.container = name }
}

func partOf(p *Part) VariableOption { return func(c *variableConfig) { c.part = p } }

// NewVariable adds a variable and its initializer to the graph, and the variable to the collections
// [GlobalVariables] and [TrainableVariables]. The name gets a numeric suffix if it is in use. By
// default the variable is trainable, global and a reference variable. After a build error, which is
// recorded in the scope, most fields are zero.
func NewVariable(s *op.Scope, name string, shape tensor.Shape, dtype tensor.DType, init Initializer, opts ...VariableOption) *Variable {
	var cfg variableConfig
	for _, o := range opts {
		o(&cfg)
	}
	s = s.WithoutControlDependencies()
	v := &Variable{DType: dtype, Shape: shape, Resource: cfg.resource, Trainable: !cfg.untrained, Part: cfg.part}
	if cfg.resource {
		v.Handle = op.VarHandleOp(s.Named(name), dtype, shape.Partial(), op.VarHandleOpContainer(cfg.container))
	} else {
		v.Handle = op.VariableV2(s.Named(name), shape.Partial(), dtype, op.VariableV2Container(cfg.container))
	}
	n := v.Handle.Node
	if n == nil {
		return v
	}
	v.Name = n.Name
	near := s.Absolute().InScope(v.Name).ColocateWith(n)
	v.Initial = init(near.InScope("Initializer"), shape, dtype)
	v.Initializer = v.Assign(near.Named("Assign"), v.Initial)
	if cfg.resource {
		n.SetAttr("shared_name", v.Name)
		v.Value = op.ReadVariableOp(near.InScope("Read").Named("ReadVariableOp"), v.Handle, dtype)
	} else {
		v.Value = op.Identity(near.Named("read"), v.Handle)
	}
	v.collect(s, cfg.local)
	return v
}

func (v *Variable) collect(s *op.Scope, local bool) {
	if local {
		s.AddToCollection(LocalVariables, v)
	} else {
		s.AddToCollection(GlobalVariables, v)
	}
	if v.Trainable {
		s.AddToCollection(TrainableVariables, v)
	}
}

// Read adds a read of the value, which runs after the control dependencies of the scope. In
// contrast, [Variable.Value] may be read before them.
func (v *Variable) Read(s *op.Scope) op.Output {
	if v.Resource {
		return op.ReadVariableOp(s, v.Handle, v.DType)
	}
	return op.Identity(s, v.Handle)
}

// IsInitialized adds a bool scalar that is true if the variable has a value.
func (v *Variable) IsInitialized(s *op.Scope) op.Output {
	s = s.ColocateWith(v.Handle.Node)
	if v.Resource {
		return op.VarIsInitializedOp(s, v.Handle)
	}
	return op.IsVariableInitialized(s, v.Handle)
}

// Assign adds a node that sets the variable to value, which has its type and, unless it is a
// resource variable, its shape.
func (v *Variable) Assign(s *op.Scope, value op.Output) *graph.Node {
	if v.Resource {
		return op.AssignVariableOp(s, v.Handle, value)
	}
	return op.Assign(s, v.Handle, value).Node
}

// AssignAdd adds a node that adds delta, of the variable's type and shape, to the variable.
func (v *Variable) AssignAdd(s *op.Scope, delta op.Output) *graph.Node {
	if v.Resource {
		return op.AssignAddVariableOp(s, v.Handle, delta)
	}
	return op.AssignAdd(s, v.Handle, delta).Node
}

// AssignSub adds a node that subtracts delta, of the variable's type and shape, from the variable.
func (v *Variable) AssignSub(s *op.Scope, delta op.Output) *graph.Node {
	if v.Resource {
		return op.AssignSubVariableOp(s, v.Handle, delta)
	}
	return op.AssignSub(s, v.Handle, delta).Node
}

// Variables returns the variables in a collection of the graph, such as [TrainableVariables], in
// the order in which they were added.
func Variables(s *op.Scope, collection string) []*Variable {
	var out []*Variable
	for _, v := range s.Collection(collection) {
		if v, ok := v.(*Variable); ok {
			out = append(out, v)
		}
	}
	return out
}

// VariablesInitializer adds a node that initializes the given variables. Without arguments it
// initializes all global variables.
func VariablesInitializer(s *op.Scope, vars ...*Variable) *graph.Node {
	if len(vars) == 0 {
		vars = Variables(s, GlobalVariables)
	}
	inits := make([]*graph.Node, len(vars))
	for i, v := range vars {
		inits[i] = v.Initializer
	}
	return op.Group(s.Named("init"), inits...)
}

// GlobalStep returns the variable "global_step", an int64 scalar that counts training steps. The
// first call for a graph adds it.
func GlobalStep(s *op.Scope) *Variable {
	for _, v := range s.Collection(globalStepKey) {
		if v, ok := v.(*Variable); ok {
			return v
		}
	}
	v := NewVariable(s.Absolute(), "global_step", tensor.Shape{}, tensor.Int64, Zeros, NotTrainable())
	s.AddToCollection(globalStepKey, v)
	return v
}
