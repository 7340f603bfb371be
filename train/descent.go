package train

import (
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/opdef"
)

// GradientDescent moves variables against their gradients.
type GradientDescent struct {
	Rate float64 // learning rate
	// Schedule is the learning rate as a scalar output, computed in each step; it overrides Rate.
	Schedule op.Output
}

// NewGradientDescent returns the optimizer with a constant learning rate.
func NewGradientDescent(rate float64) *GradientDescent { return &GradientDescent{Rate: rate} }

// Name implements [Optimizer].
func (*GradientDescent) Name() string { return "GradientDescent" }

// Begin implements [Optimizer].
func (o *GradientDescent) Begin(_ []*Variable, _, inner *op.Scope) Updater {
	rate := rateOf(inner, o.Rate, o.Schedule)
	return &descent{kernelUpdater{kernel: "GradientDescent", values: map[string]op.Output{"alpha": rate}}, rate}
}

// descent updates rows with a scatter operation, since TensorFlow has no sparse form of
// ApplyGradientDescent.
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

// Momentum is gradient descent with a decaying velocity, to which gradients are added (Polyak,
// 1964).
type Momentum struct {
	Rate float64 // learning rate
	// Schedule is the learning rate as a scalar output, computed in each step; it overrides Rate.
	Schedule op.Output
	Momentum float64 // fraction of the velocity that is kept from step to step
	Nesterov bool    // Nesterov's variant (Sutskever et al., 2013)
}

// NewMomentum returns the optimizer without Nesterov's variant.
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

// RMSProp divides the gradient by the root of a running mean of its square, with a momentum
// (Hinton, 2012).
type RMSProp struct {
	Rate float64 // learning rate
	// Schedule is the learning rate as a scalar output, computed in each step; it overrides Rate.
	Schedule op.Output
	Decay    float64 // of the running mean
	Momentum float64 // fraction of the last update that is added to the next
	Epsilon  float64 // added to the mean square
	Centered bool    // divide by the standard deviation instead of the root mean square
	FromZero bool    // the running mean starts at 0, as in Keras, instead of 1
}

// NewRMSProp returns the optimizer with a decay of 0.9, no momentum and an epsilon of 1e-10.
func NewRMSProp(rate float64) *RMSProp { return &RMSProp{Rate: rate, Decay: 0.9, Epsilon: 1e-10} }

// Name implements [Optimizer].
func (*RMSProp) Name() string { return "RMSProp" }

// Begin implements [Optimizer].
func (o *RMSProp) Begin(vars []*Variable, outer, inner *op.Scope) Updater {
	start := Initializer(Ones)
	if o.FromZero {
		start = Zeros
	}
	kernel, kinds := "RMSProp", []slotKind{{"ms", start}, {"mom", Zeros}}
	if o.Centered {
		kernel, kinds = "CenteredRMSProp", []slotKind{{"ms", start}, {"mg", Zeros}, {"mom", Zeros}}
	}
	return &kernelUpdater{
		kernel: kernel, slots: newSlots(outer, o.Name(), vars, kinds...),
		values: map[string]op.Output{
			"lr": rateOf(inner, o.Rate, o.Schedule), "rho": hyper(inner, "decay", o.Decay),
			"momentum": hyper(inner, "momentum", o.Momentum), "epsilon": hyper(inner, "epsilon", o.Epsilon),
		},
	}
}
