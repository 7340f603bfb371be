package train

import (
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
)

// GradientDescent moves variables against their gradients.
type GradientDescent struct {
	Rate op.Output // learning rate, scalar
}

// Name implements Optimizer.
func (*GradientDescent) Name() string { return "GradientDescent" }

// Prepare implements Optimizer.
func (*GradientDescent) Prepare(*op.Scope, []*Variable) error { return nil }

// Dense implements Optimizer.
func (o *GradientDescent) Dense(s *op.Scope, v *Variable, grad op.Output) *graph.Node {
	if v.Resource {
		return op.ResourceApplyGradientDescent(s, v.Handle, cast(s, o.Rate, v), grad)
	}
	return op.ApplyGradientDescent(s, v.Handle, cast(s, o.Rate, v), grad).Node
}

// Sparse implements Optimizer.
func (o *GradientDescent) Sparse(s *op.Scope, v *Variable, values, indices op.Output) *graph.Node {
	delta := op.Mul(s, values, cast(s, o.Rate, v))
	if v.Resource {
		return op.ResourceScatterSub(s, v.Handle, indices, delta)
	}
	return op.ScatterSub(s, v.Handle, indices, delta).Node
}

// Finish implements Optimizer.
func (*GradientDescent) Finish(*op.Scope, []*graph.Node) []*graph.Node { return nil }

// Momentum is gradient descent with an accumulated velocity (Polyak; with Nesterov's correction if asked for).
type Momentum struct {
	Rate     op.Output // learning rate, scalar
	Momentum op.Output // factor of the velocity, scalar
	Nesterov bool

	velocity slots
}

// Name implements Optimizer.
func (*Momentum) Name() string { return "Momentum" }

// Prepare implements Optimizer.
func (o *Momentum) Prepare(s *op.Scope, vars []*Variable) error {
	o.velocity = slots{}
	o.velocity.add(s, vars, "Momentum", Zeros)
	return nil
}

// Dense implements Optimizer.
func (o *Momentum) Dense(s *op.Scope, v *Variable, grad op.Output) *graph.Node {
	rate, momentum := cast(s, o.Rate, v), cast(s, o.Momentum, v)
	if v.Resource {
		return op.ResourceApplyMomentum(s, v.Handle, o.velocity[v].Handle, rate, grad, momentum,
			op.ResourceApplyMomentumUseNesterov(o.Nesterov))
	}
	return op.ApplyMomentum(s, v.Handle, o.velocity[v].Handle, rate, grad, momentum, op.ApplyMomentumUseNesterov(o.Nesterov)).Node
}

// Sparse implements Optimizer.
func (o *Momentum) Sparse(s *op.Scope, v *Variable, values, indices op.Output) *graph.Node {
	rate, momentum := cast(s, o.Rate, v), cast(s, o.Momentum, v)
	if v.Resource {
		return op.ResourceSparseApplyMomentum(s, v.Handle, o.velocity[v].Handle, rate, values, indices, momentum,
			op.ResourceSparseApplyMomentumUseNesterov(o.Nesterov))
	}
	return op.SparseApplyMomentum(s, v.Handle, o.velocity[v].Handle, rate, values, indices, momentum,
		op.SparseApplyMomentumUseNesterov(o.Nesterov)).Node
}

// Finish implements Optimizer.
func (*Momentum) Finish(*op.Scope, []*graph.Node) []*graph.Node { return nil }

// Adagrad divides the rate of each element by the root of the sum of its squared gradients (Duchi et al., 2011).
type Adagrad struct {
	Rate    op.Output // learning rate, scalar
	Initial float64   // start of the sums; 0 stands for TensorFlow's 0.1

	sums slots
}

// Name implements Optimizer.
func (*Adagrad) Name() string { return "Adagrad" }

// Prepare implements Optimizer.
func (o *Adagrad) Prepare(s *op.Scope, vars []*Variable) error {
	initial := o.Initial
	if initial == 0 {
		initial = 0.1
	}
	o.sums = slots{}
	o.sums.add(s, vars, "Adagrad", Constant(initial))
	return nil
}

// Dense implements Optimizer.
func (o *Adagrad) Dense(s *op.Scope, v *Variable, grad op.Output) *graph.Node {
	if v.Resource {
		return op.ResourceApplyAdagrad(s, v.Handle, o.sums[v].Handle, cast(s, o.Rate, v), grad)
	}
	return op.ApplyAdagrad(s, v.Handle, o.sums[v].Handle, cast(s, o.Rate, v), grad).Node
}

// Sparse implements Optimizer.
func (o *Adagrad) Sparse(s *op.Scope, v *Variable, values, indices op.Output) *graph.Node {
	if v.Resource {
		return op.ResourceSparseApplyAdagrad(s, v.Handle, o.sums[v].Handle, cast(s, o.Rate, v), values, indices)
	}
	return op.SparseApplyAdagrad(s, v.Handle, o.sums[v].Handle, cast(s, o.Rate, v), values, indices).Node
}

// Finish implements Optimizer.
func (*Adagrad) Finish(*op.Scope, []*graph.Node) []*graph.Node { return nil }
