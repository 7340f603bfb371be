package train

import (
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
)

// Names of the collections that variables are added to.
const (
	GlobalVariables    = "variables"
	TrainableVariables = "trainable_variables"
	globalStepKey      = "global_step"
)

// Variable is a value that lives on a device from step to step.
type Variable struct {
	Name        string
	DType       tensor.DType
	Shape       tensor.Shape
	Handle      op.Output   // a reference, or a resource handle
	Value       op.Output   // the value as it is read
	Initial     op.Output   // the value that Initializer assigns
	Initializer *graph.Node // assigns the initial value; nil if the variable could not be added
	Resource    bool        // Handle is a resource handle
}

// VariableOption changes how a variable is made.
type VariableOption func(*variableConfig)

type variableConfig struct {
	trainable bool
	resource  bool
	container string
}

// NotTrainable keeps the variable out of what optimizers change.
func NotTrainable() VariableOption { return func(c *variableConfig) { c.trainable = false } }

// Resource makes the variable a resource variable, which is read by an operation of its own.
func Resource() VariableOption { return func(c *variableConfig) { c.resource = true } }

// Container puts the variable into the named container of its task.
func Container(name string) VariableOption {
	return func(c *variableConfig) { c.container = name }
}

// NewVariable adds a variable with the given name, made unique, and its initializer, and adds it to the collections of
// variables.
func NewVariable(s *op.Scope, name string, shape tensor.Shape, dtype tensor.DType, init Initializer, opts ...VariableOption) *Variable {
	cfg := variableConfig{trainable: true}
	for _, o := range opts {
		o(&cfg)
	}
	s = s.WithoutControlDependencies()
	v := &Variable{DType: dtype, Shape: shape, Resource: cfg.resource}
	if cfg.resource {
		v.Handle = op.VarHandleOp(s.Named(name), dtype, shape.Partial(), op.VarHandleOpContainer(cfg.container),
			op.VarHandleOpSharedName(s.Prefix()+name))
	} else {
		v.Handle = op.VariableV2(s.Named(name), shape.Partial(), dtype, op.VariableV2Container(cfg.container))
	}
	if v.Handle.Node == nil {
		return v
	}
	v.Name = v.Handle.Node.Name
	own := below(s, v.Name)
	near := own.ColocateWith(v.Handle.Node)
	v.Initial = init(near.InScope("Initializer"), shape, dtype)
	if cfg.resource {
		v.Initializer = op.AssignVariableOp(near.Named("Assign"), v.Handle, v.Initial)
		v.Value = op.ReadVariableOp(near.InScope("Read").Named("ReadVariableOp"), v.Handle, dtype)
	} else {
		v.Initializer = op.Assign(near.Named("Assign"), v.Handle, v.Initial).Node
		v.Value = op.Identity(near.Named("read"), v.Handle)
	}
	s.AddToCollection(GlobalVariables, v)
	if cfg.trainable {
		s.AddToCollection(TrainableVariables, v)
	}
	return v
}

// below returns the scope of the nodes that belong to the variable of the given full name.
func below(s *op.Scope, name string) *op.Scope {
	return s.Absolute().InScope(name)
}

// Variables returns the variables in a collection of the graph, in order of their making.
func Variables(s *op.Scope, collection string) []*Variable {
	var out []*Variable
	for _, v := range s.Collection(collection) {
		if v, ok := v.(*Variable); ok {
			out = append(out, v)
		}
	}
	return out
}

// InitializerOf adds a node that initializes variables; without any, all of the graph.
func InitializerOf(s *op.Scope, vars ...*Variable) *graph.Node {
	if len(vars) == 0 {
		vars = Variables(s, GlobalVariables)
	}
	inits := make([]*graph.Node, len(vars))
	for i, v := range vars {
		inits[i] = v.Initializer
	}
	return Group(s, "init", inits...)
}

// Group adds a node that runs when all of the given nodes have run. Nodes on one device are gathered there first, so that
// one control edge per device crosses the network.
func Group(s *op.Scope, name string, nodes ...*graph.Node) *graph.Node {
	byDevice := map[string][]*graph.Node{}
	var order []string
	for _, n := range nodes {
		if n == nil {
			continue
		}
		if byDevice[n.Device] == nil {
			order = append(order, n.Device)
		}
		byDevice[n.Device] = append(byDevice[n.Device], n)
	}
	if len(order) == 1 {
		return op.NoOp(s.Named(name).WithoutDevices().WithDevice(order[0]).WithControlDependencies(byDevice[order[0]]...).Named(name))
	}
	outer := s.SubScope(name)
	parts := make([]*graph.Node, len(order))
	for i, d := range order {
		parts[i] = op.NoOp(outer.WithoutDevices().WithDevice(d).WithControlDependencies(byDevice[d]...).Named("group_deps"))
	}
	return op.NoOp(s.WithControlDependencies(parts...).Named(name))
}

// GlobalStep returns the variable that counts training steps, which is made at the first call.
func GlobalStep(s *op.Scope) *Variable {
	for _, v := range s.Collection(globalStepKey) {
		return v.(*Variable)
	}
	v := NewVariable(s.Absolute(), "global_step", tensor.Shape{}, tensor.Int64, Zeros, NotTrainable())
	s.AddToCollection(globalStepKey, v)
	return v
}

// AssignAdd adds a node that adds delta to a variable.
func AssignAdd(s *op.Scope, v *Variable, delta op.Output) *graph.Node {
	if v.Resource {
		return op.AssignAddVariableOp(s, v.Handle, delta)
	}
	return op.AssignAdd(s, v.Handle, delta).Node
}

// Assign adds a node that makes value the value of a variable.
func Assign(s *op.Scope, v *Variable, value op.Output) *graph.Node {
	if v.Resource {
		return op.AssignVariableOp(s, v.Handle, value)
	}
	return op.Assign(s, v.Handle, value).Node
}
