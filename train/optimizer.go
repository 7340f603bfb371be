package train

import (
	"github.com/weft-ml/weft/gradients"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/status"
)

// Optimizer updates variables with their gradients. It holds only settings, so it may be used for
// any number of graphs.
type Optimizer interface {
	// Name returns the name of the nodes that apply gradients and of the optimizer's own variables
	// (slots), which is TensorFlow's name of the optimizer.
	Name() string
	// Begin adds the nodes that all updates share: slots and other variables in the scope outer,
	// other nodes in the scope inner, which is within outer.
	Begin(vars []*Variable, outer, inner *op.Scope) Updater
}

// Updater adds the nodes that update the variables of one graph.
type Updater interface {
	// Dense adds the update of a variable with a gradient of the same shape.
	Dense(s *op.Scope, v *Variable, grad op.Output) *graph.Node
	// Sparse adds the update of the rows of a variable with the given indices, which are distinct.
	Sparse(s *op.Scope, v *Variable, values, indices op.Output) *graph.Node
	// Finish adds the nodes that run after all updates and returns them; nil for none.
	Finish(s *op.Scope, updates []*graph.Node) []*graph.Node
}

// GradientVariable is a variable and the gradient of the loss with respect to it.
type GradientVariable struct {
	Grad gradients.Grad
	Var  *Variable
}

// ComputeGradients adds the gradients of loss with respect to the given variables. Without
// variables it uses all trainable variables of the graph. The gradients may be modified, for
// instance clipped, before they are passed to [ApplyGradients].
func ComputeGradients(s *op.Scope, loss op.Output, vars ...*Variable) []GradientVariable {
	if len(vars) == 0 {
		vars = Variables(s, TrainableVariables)
	}
	if len(vars) == 0 {
		s.Fail(status.InvalidArgumentf("train: no variables to optimize"))
		return nil
	}
	xs := make([]op.Output, len(vars))
	var opts []gradients.Option
	for i, v := range vars {
		xs[i] = v.Handle
		if !v.Resource {
			opts = []gradients.Option{gradients.Gate()}
		}
	}
	out := make([]GradientVariable, len(vars))
	for i, g := range gradients.Compute(s, []op.Output{loss}, xs, opts...) {
		out[i] = GradientVariable{g, vars[i]}
	}
	return out
}

// ApplyGradients adds nodes that update variables with their gradients and then, unless step is
// nil, increment step. Variables without a gradient do not change. It returns the node to run in
// each training step, and adds it to the collection [TrainOps]. It returns nil after a build error.
func ApplyGradients(s *op.Scope, opt Optimizer, grads []GradientVariable, step *Variable) *graph.Node {
	var some []GradientVariable
	var vars []*Variable
	for _, g := range grads {
		if !g.Grad.IsNone() {
			some, vars = append(some, g), append(vars, g.Var)
		}
	}
	switch {
	case s.Err() != nil:
		return nil
	case len(vars) == 0:
		s.Fail(status.InvalidArgumentf("train: no gradients provided for any variable"))
		return nil
	}
	inner, result := s.Composite(opt.Name())
	u := opt.Begin(vars, s, inner)
	var updates []*graph.Node
	for _, g := range some {
		updates = append(updates, update(inner.ColocateWith(g.Var.Handle.Node).SubScope("update_"+g.Var.Name), u, g))
	}
	updates = append(updates, u.Finish(inner, updates)...)
	done := finishStep(inner, result, updates, step)
	s.AddToCollection(TrainOps, done)
	return done
}

// finishStep adds the node that runs after the updates and increments step unless it is nil.
func finishStep(inner, result *op.Scope, updates []*graph.Node, step *Variable) *graph.Node {
	if step == nil {
		return op.Group(result, updates...)
	}
	all := op.Group(inner.Named("update"), updates...)
	one := op.ConstOf(inner.ColocateWith(step.Handle.Node).Named("value").WithControlDependencies(all), step.DType, 1)
	return step.AssignAdd(result.ColocateWith(step.Handle.Node), one)
}

func update(s *op.Scope, u Updater, g GradientVariable) *graph.Node {
	sparse := g.Grad.Slices
	if sparse == nil {
		return u.Dense(s, g.Var, g.Grad.Dense)
	}
	values, indices := sumRows(s, sparse)
	return u.Sparse(s, g.Var, values, indices)
}

// sumRows adds up the rows of a sparse gradient that have the same index.
func sumRows(s *op.Scope, g *gradients.IndexedSlices) (values, indices op.Output) {
	unique, index := op.Unique(s, g.Indices)
	rows := op.StridedSlice(s, op.Shape(s, unique), op.Const(s, []int32{0}), op.Const(s, []int32{1}), op.Const(s, []int32{1}),
		op.StridedSliceShrinkAxisMask(1))
	return op.UnsortedSegmentSum(s, g.Values, index, rows), unique
}

// Minimize adds the gradients of loss with respect to all trainable variables and applies them: it
// calls [ComputeGradients] and [ApplyGradients]. It returns the node to run in each training step.
func Minimize(s *op.Scope, opt Optimizer, loss op.Output, step *Variable) *graph.Node {
	return ApplyGradients(s, opt, ComputeGradients(s, loss), step)
}
