package train

import (
	"cmp"
	"slices"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
)

// Adam divides the running mean of the gradients by the root of the running mean of their squares
// (Kingma and Ba, 2014).
type Adam struct {
	Rate float64 // learning rate
	// Schedule is the learning rate as a scalar output, computed in each step; it overrides Rate.
	Schedule op.Output
	Beta1    float64 // decay of the mean
	Beta2    float64 // decay of the mean square
	Epsilon  float64 // added to the divisor; "epsilon hat" in the paper
}

// NewAdam returns the optimizer with decays of 0.9 and 0.999 and an epsilon of 1e-8.
func NewAdam(rate float64) *Adam { return &Adam{Rate: rate, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8} }

// Name implements [Optimizer].
func (*Adam) Name() string { return "Adam" }

// Begin implements [Optimizer].
func (o *Adam) Begin(vars []*Variable, outer, inner *op.Scope) Updater {
	first := slices.MinFunc(vars, func(a, b *Variable) int { return cmp.Compare(a.Name, b.Name) })
	near := outer.ColocateWith(first.Handle.Node)
	opts := []VariableOption{NotTrainable()}
	if first.Resource {
		opts = append(opts, Resource())
	}
	u := &adam{
		power1: NewVariable(near, "beta1_power", tensor.Shape{}, first.DType, Constant(o.Beta1), opts...),
		power2: NewVariable(near, "beta2_power", tensor.Shape{}, first.DType, Constant(o.Beta2), opts...),
		kernelUpdater: kernelUpdater{
			kernel: "Adam", slots: newSlots(outer, o.Name(), vars, slotKind{"m", Zeros}, slotKind{"v", Zeros}),
		},
	}
	u.values = map[string]op.Output{
		"lr": rateOf(inner, o.Rate, o.Schedule), "beta1": hyper(inner, "beta1", o.Beta1), "beta2": hyper(inner, "beta2", o.Beta2),
		"epsilon": hyper(inner, "epsilon", o.Epsilon), "beta1_power": u.power1.Value, "beta2_power": u.power2.Value,
	}
	return u
}

// adam also holds the powers of the decays, which all updates share.
type adam struct {
	kernelUpdater
	power1, power2 *Variable
}

// Sparse implements [Updater]. As in TensorFlow the means of all rows decay, including those
// without a gradient.
func (u *adam) Sparse(s *op.Scope, v *Variable, values, indices op.Output) *graph.Node {
	value := func(arg string) op.Output { return castTo(s, u.values[arg], v.DType) }
	one := op.ConstOf(s, v.DType, 1)
	bias1, bias2 := op.Sub(s, one, value("beta1_power")), op.Sub(s, one, value("beta2_power"))
	rate := op.RealDiv(s, op.Mul(s, value("lr"), op.Sqrt(s, bias2)), bias1)
	mean, meanDone := decay(s, u.slots["m"][v], value("beta1"), op.Mul(s, values, op.Sub(s, one, value("beta1"))), indices)
	square := op.Mul(s, values, values)
	square, squareDone := decay(s, u.slots["v"][v], value("beta2"), op.Mul(s, square, op.Sub(s, one, value("beta2"))), indices)
	delta := op.RealDiv(s, op.Mul(s, rate, mean), op.AddV2(s, op.Sqrt(s, square), value("epsilon")))
	return op.Group(s.Named("group_deps"), v.AssignSub(s, delta), meanDone, squareDone)
}

// decay multiplies a slot by beta and then adds values to some of its rows. It returns the new
// value and the node that stores it.
func decay(s *op.Scope, slot *Variable, beta, values, indices op.Output) (op.Output, *graph.Node) {
	scaled := slot.Assign(s, op.Mul(s, slot.Value, beta))
	after := s.WithControlDependencies(scaled)
	if slot.Resource {
		added := op.ResourceScatterAdd(after, slot.Handle, indices, values)
		return op.ReadVariableOp(s.WithControlDependencies(added), slot.Handle, slot.DType), added
	}
	added := op.ScatterAdd(after, slot.Handle, indices, values)
	return added, added.Node
}

// Finish implements [Updater]. It multiplies the powers by their decays.
func (u *adam) Finish(s *op.Scope, updates []*graph.Node) []*graph.Node {
	near := s.ColocateWith(u.power1.Handle.Node)
	after := near.WithControlDependencies(updates...)
	advance := func(power *Variable, beta op.Output) *graph.Node {
		return power.Assign(near, op.Mul(near, power.Read(after), castTo(near, beta, power.DType)))
	}
	return []*graph.Node{advance(u.power1, u.values["beta1"]), advance(u.power2, u.values["beta2"])}
}
