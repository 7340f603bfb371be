package train

import (
	"slices"
	"strings"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
)

// Adam keeps running means of the gradients and of their squares (Kingma and Ba, 2014). Zero fields stand for
// TensorFlow's defaults.
type Adam struct {
	Rate    op.Output // learning rate, scalar
	Beta1   float64   // decay of the mean; 0.9
	Beta2   float64   // decay of the mean square; 0.999
	Epsilon float64   // 1e-8

	mean, square       slots
	power1, power2     *Variable
	beta1, beta2, tiny op.Output
}

// Name implements Optimizer.
func (*Adam) Name() string { return "Adam" }

// Prepare implements Optimizer.
func (o *Adam) Prepare(s *op.Scope, vars []*Variable) error {
	o.Beta1, o.Beta2, o.Epsilon = orDefault(o.Beta1, 0.9), orDefault(o.Beta2, 0.999), orDefault(o.Epsilon, 1e-8)
	first := slices.MinFunc(vars, func(a, b *Variable) int { return strings.Compare(a.Name, b.Name) })
	near := s.Absolute().ColocateWith(first.Handle.Node)
	opts := []VariableOption{NotTrainable()}
	if first.Resource {
		opts = append(opts, Resource())
	}
	o.power1 = NewVariable(near, "beta1_power", tensor.Shape{}, first.DType, Constant(o.Beta1), opts...)
	o.power2 = NewVariable(near, "beta2_power", tensor.Shape{}, first.DType, Constant(o.Beta2), opts...)
	o.mean, o.square = slots{}, slots{}
	o.mean.add(s, vars, "Adam", Zeros)
	o.square.add(s, vars, "Adam", Zeros)
	o.beta1 = op.ConstOf(s.Named("beta1"), first.DType, o.Beta1)
	o.beta2 = op.ConstOf(s.Named("beta2"), first.DType, o.Beta2)
	o.tiny = op.ConstOf(s.Named("epsilon"), first.DType, o.Epsilon)
	return nil
}

func orDefault(v, def float64) float64 {
	if v == 0 {
		return def
	}
	return v
}

// Dense implements Optimizer.
func (o *Adam) Dense(s *op.Scope, v *Variable, grad op.Output) *graph.Node {
	p1, p2, rate := cast(s, o.power1.Value, v), cast(s, o.power2.Value, v), cast(s, o.Rate, v)
	b1, b2, tiny := cast(s, o.beta1, v), cast(s, o.beta2, v), cast(s, o.tiny, v)
	if v.Resource {
		return op.ResourceApplyAdam(s, v.Handle, o.mean[v].Handle, o.square[v].Handle, p1, p2, rate, b1, b2, tiny, grad)
	}
	return op.ApplyAdam(s, v.Handle, o.mean[v].Handle, o.square[v].Handle, p1, p2, rate, b1, b2, tiny, grad).Node
}

// Sparse implements Optimizer. As in TensorFlow the means of all rows decay, whether they have a gradient or not.
func (o *Adam) Sparse(s *op.Scope, v *Variable, values, indices op.Output) *graph.Node {
	one := op.ConstOf(s, v.DType, 1)
	p1, p2 := cast(s, o.power1.Value, v), cast(s, o.power2.Value, v)
	b1, b2, tiny := cast(s, o.beta1, v), cast(s, o.beta2, v), cast(s, o.tiny, v)
	rate := op.RealDiv(s, op.Mul(s, cast(s, o.Rate, v), op.Sqrt(s, op.Sub(s, one, p2))), op.Sub(s, one, p1))
	mean, updatedMean := decay(s, o.mean[v], b1, op.Mul(s, values, op.Sub(s, one, b1)), indices)
	square, updatedSquare := decay(s, o.square[v], b2, op.Mul(s, op.Mul(s, values, values), op.Sub(s, one, b2)), indices)
	delta := op.RealDiv(s, op.Mul(s, rate, mean), op.AddV2(s, op.Sqrt(s, square), tiny))
	var moved *graph.Node
	if v.Resource {
		moved = op.AssignSubVariableOp(s, v.Handle, delta)
	} else {
		moved = op.AssignSub(s, v.Handle, delta).Node
	}
	return Group(s, "sparse", moved, updatedMean, updatedSquare)
}

// decay multiplies a slot by beta, adds values to some of its rows, and returns its new value and the node that made it.
func decay(s *op.Scope, slot *Variable, beta, values, indices op.Output) (op.Output, *graph.Node) {
	scaled := Assign(s, slot, op.Mul(s, slot.Value, beta))
	after := s.WithControlDependencies(scaled)
	if slot.Resource {
		added := op.ResourceScatterAdd(after, slot.Handle, indices, values)
		return op.ReadVariableOp(s.WithControlDependencies(added), slot.Handle, slot.DType), added
	}
	added := op.ScatterAdd(after, slot.Handle, indices, values)
	return added, added.Node
}

// Finish implements Optimizer: it moves the powers of the decays on.
func (o *Adam) Finish(s *op.Scope, updates []*graph.Node) []*graph.Node {
	after := s.WithControlDependencies(updates...).ColocateWith(o.power1.Handle.Node)
	return []*graph.Node{
		Assign(after, o.power1, op.Mul(after, o.power1.Value, o.beta1)),
		Assign(after, o.power2, op.Mul(after, o.power2.Value, o.beta2)),
	}
}
