package train

import (
	"fmt"

	"github.com/weft-ml/weft/gradients"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
)

// Optimizer changes variables by their gradients.
type Optimizer interface {
	// Name is the default name of the node that applies gradients, as TensorFlow names it.
	Name() string
	// Prepare adds what all updates share and the slots of each variable. It is called once, before the updates.
	Prepare(s *op.Scope, vars []*Variable) error
	// Dense adds the update of a variable by a gradient of its shape.
	Dense(s *op.Scope, v *Variable, grad op.Output) *graph.Node
	// Sparse adds the update of some rows of a variable, each named once.
	Sparse(s *op.Scope, v *Variable, values, indices op.Output) *graph.Node
	// Finish adds what runs after all updates and returns it; nil for nothing.
	Finish(s *op.Scope, updates []*graph.Node) []*graph.Node
}

// GradientVariable is a variable with the gradient of what is minimized.
type GradientVariable struct {
	Grad gradients.Grad
	Var  *Variable
}

// ComputeGradients adds the gradients of loss with respect to variables; without any, all trainable ones of the graph.
func ComputeGradients(s *op.Scope, loss op.Output, vars ...*Variable) ([]GradientVariable, error) {
	if len(vars) == 0 {
		vars = Variables(s, TrainableVariables)
	}
	if len(vars) == 0 {
		return nil, fmt.Errorf("train: no variables to optimize")
	}
	xs := make([]op.Output, len(vars))
	for i, v := range vars {
		xs[i] = v.Handle
	}
	grads, err := gradients.Add(s, []op.Output{loss}, xs)
	if err != nil {
		return nil, err
	}
	out := make([]GradientVariable, len(vars))
	for i, v := range vars {
		out[i] = GradientVariable{grads[i], v}
	}
	return out, nil
}

// ApplyGradients adds the update of variables by their gradients and, if step is not nil, the count of it. It returns the
// node to run.
func ApplyGradients(s *op.Scope, opt Optimizer, grads []GradientVariable, step *Variable) (*graph.Node, error) {
	var vars []*Variable
	for _, g := range grads {
		if !g.Grad.IsNone() {
			vars = append(vars, g.Var)
		}
	}
	if len(vars) == 0 {
		return nil, fmt.Errorf("train: no gradients provided for any variable")
	}
	inner := s.SubScope(opt.Name())
	if err := opt.Prepare(inner, vars); err != nil {
		return nil, err
	}
	var updates []*graph.Node
	for _, g := range grads {
		if g.Grad.IsNone() {
			continue
		}
		near := inner.ColocateWith(g.Var.Handle.Node).SubScope("update_" + g.Var.Name)
		updates = append(updates, update(near, opt, g))
	}
	updates = append(updates, opt.Finish(inner, updates)...)
	var done *graph.Node
	if step == nil {
		done = Group(inner, "train", updates...)
	} else {
		all := Group(inner, "update", updates...)
		count := inner.ColocateWith(step.Handle.Node).WithControlDependencies(all)
		done = AssignAdd(count.Named("value"), step, op.ConstOf(count, step.DType, 1))
	}
	s.AddToCollection("train_op", done)
	return done, s.Err()
}

func update(s *op.Scope, opt Optimizer, g GradientVariable) *graph.Node {
	slices := g.Grad.Slices
	if slices == nil {
		return opt.Dense(s, g.Var, g.Grad.Dense)
	}
	unique, index := op.Unique(s, slices.Indices)
	rows := op.StridedSlice(s, op.Shape(s, unique), op.Const(s, []int32{0}), op.Const(s, []int32{1}), op.Const(s, []int32{1}),
		op.StridedSliceShrinkAxisMask(1))
	return opt.Sparse(s, g.Var, op.UnsortedSegmentSum(s, slices.Values, index, rows), unique)
}

// Minimize adds the gradients of loss with respect to all trainable variables, and their update.
func Minimize(s *op.Scope, opt Optimizer, loss op.Output, step *Variable) (*graph.Node, error) {
	grads, err := ComputeGradients(s, loss)
	if err != nil {
		return nil, err
	}
	return ApplyGradients(s, opt, grads, step)
}

// slots are the variables that an optimizer keeps beside each variable.
type slots map[*Variable]*Variable

// add makes a slot of the given name with the shape and the device of each variable.
func (m slots) add(s *op.Scope, vars []*Variable, name string, init Initializer) {
	for _, v := range vars {
		opts := []VariableOption{NotTrainable()}
		if v.Resource {
			opts = append(opts, Resource())
		}
		near := s.Absolute().ColocateWith(v.Handle.Node)
		m[v] = NewVariable(near, v.Name+"/"+name, v.Shape, v.DType, init, opts...)
	}
}

// cast returns a hyperparameter in the type of a variable.
func cast(s *op.Scope, x op.Output, v *Variable) op.Output {
	if x.Node == nil || x.DType().Base() == v.DType {
		return x
	}
	return op.Cast(s, x, v.DType)
}
