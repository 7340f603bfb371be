package train

import (
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/opdef"
)

// GradientDescent moves variables against their gradients.
type GradientDescent struct {
	Rate float64 // learning rate
	// takes the place of Rate where it is given: a scalar that is computed in each step
	Schedule op.Output
}

// NewGradientDescent returns the optimizer with a learning rate.
func NewGradientDescent(rate float64) *GradientDescent { return &GradientDescent{Rate: rate} }

// Name implements [Optimizer].
func (*GradientDescent) Name() string { return "GradientDescent" }

// Begin implements [Optimizer].
func (o *GradientDescent) Begin(_ []*Variable, _, inner *op.Scope) Updater {
	rate := rateOf(inner, o.Rate, o.Schedule)
	return &descent{kernelUpdater{kernel: "GradientDescent", values: map[string]op.Output{"alpha": rate}}, rate}
}

// descent subtracts rows by a scatter: there is no operation of its own for it.
type descent struct {
	kernelUpdater
	rate op.Output
}

// Sparse implements [Updater].
func (u *descent) Sparse(s *op.Scope, v *Variable, values, indices op.Output) *graph.Node {
	delta := op.Mul(s, values, castTo(s, u.rate, v.DType))
	if v.Resource {
		return op.ResourceScatterSub(s, v.Handle, indices, delta)
	}
	return op.ScatterSub(s, v.Handle, indices, delta).Node
}

// Momentum is gradient descent with a velocity that gradients add to and that decays (Polyak,
// 1964).
type Momentum struct {
	Rate float64 // learning rate
	// takes the place of Rate where it is given: a scalar that is computed in each step
	Schedule op.Output
	Momentum float64 // part of the velocity that is kept from step to step
	Nesterov bool    // look ahead along the velocity (Sutskever et al., 2013)
}

// NewMomentum returns the optimizer with a learning rate and a momentum.
func NewMomentum(rate, momentum float64) *Momentum { return &Momentum{Rate: rate, Momentum: momentum} }

// Name implements [Optimizer].
func (*Momentum) Name() string { return "Momentum" }

// Begin implements [Optimizer].
func (o *Momentum) Begin(vars []*Variable, outer, inner *op.Scope) Updater {
	return &kernelUpdater{
		kernel: "Momentum", attrs: opdef.Attrs{"use_nesterov": o.Nesterov},
		slots:  newSlots(outer, o.Name(), vars, slotKind{"accum", Zeros}),
		values: map[string]op.Output{"lr": rateOf(inner, o.Rate, o.Schedule), "momentum": hyper(inner, "momentum", o.Momentum)},
	}
}

// RMSProp divides the gradient by the root of a running mean of its square (Hinton, 2012), with a
// momentum.
type RMSProp struct {
	Rate float64 // learning rate
	// takes the place of Rate where it is given: a scalar that is computed in each step
	Schedule op.Output
	Decay    float64 // of the running mean
	Momentum float64
	Epsilon  float64 // keeps the divisor from zero
	Centered bool    // take the variance in the place of the mean square
}

// NewRMSProp returns the optimizer with a learning rate, decay 0.9, no momentum and epsilon 1e-10.
func NewRMSProp(rate float64) *RMSProp { return &RMSProp{Rate: rate, Decay: 0.9, Epsilon: 1e-10} }

// Name implements [Optimizer].
func (*RMSProp) Name() string { return "RMSProp" }

// Begin implements [Optimizer].
func (o *RMSProp) Begin(vars []*Variable, outer, inner *op.Scope) Updater {
	kernel, kinds := "RMSProp", []slotKind{{"ms", Ones}, {"mom", Zeros}}
	if o.Centered {
		kernel, kinds = "CenteredRMSProp", []slotKind{{"ms", Ones}, {"mg", Zeros}, {"mom", Zeros}}
	}
	return &kernelUpdater{
		kernel: kernel, slots: newSlots(outer, o.Name(), vars, kinds...),
		values: map[string]op.Output{
			"lr": rateOf(inner, o.Rate, o.Schedule), "rho": hyper(inner, "decay", o.Decay),
			"momentum": hyper(inner, "momentum", o.Momentum), "epsilon": hyper(inner, "epsilon", o.Epsilon),
		},
	}
}
