package train

import "github.com/weft-ml/weft/op"

// Ftrl is "follow the regularized leader" (McMahan et al., 2013), for sparse models with many
// features.
type Ftrl struct {
	Rate float64 // learning rate
	// Schedule is the learning rate as a scalar output, computed in each step; it overrides Rate.
	Schedule    op.Output
	Power       float64 // exponent of the learning rate's decay; at most zero
	Initial     float64 // initial value of the sums of squared gradients
	L1, L2      float64 // strengths of regularization
	L2Shrinkage float64 // strength of an additional L2 penalty on the magnitude; 0 for none
}

// NewFtrl returns the optimizer with a power of -0.5, sums that start at 0.1, and no
// regularization.
func NewFtrl(rate float64) *Ftrl { return &Ftrl{Rate: rate, Power: -0.5, Initial: 0.1} }

// Name implements [Optimizer].
func (*Ftrl) Name() string { return "Ftrl" }

// Begin implements [Optimizer].
func (o *Ftrl) Begin(vars []*Variable, outer, inner *op.Scope) Updater {
	u := &kernelUpdater{
		kernel: "Ftrl", slots: newSlots(outer, o.Name(), vars, slotKind{"accum", Constant(o.Initial)}, slotKind{"linear", Zeros}),
		values: map[string]op.Output{
			"lr": rateOf(inner, o.Rate, o.Schedule), "l1": hyper(inner, "l1_regularization_strength", o.L1),
			"l2": hyper(inner, "l2_regularization_strength", o.L2), "lr_power": hyper(inner, "learning_rate_power", o.Power),
		},
	}
	if o.L2Shrinkage > 0 {
		u.kernel = "FtrlV2"
		u.values["l2_shrinkage"] = hyper(inner, "l2_shrinkage_regularization_strength", o.L2Shrinkage)
	}
	return u
}

// ProximalGradientDescent is gradient descent that shrinks variables by regularization after each
// step (Duchi and Singer, 2009).
type ProximalGradientDescent struct {
	Rate float64 // learning rate
	// Schedule is the learning rate as a scalar output, computed in each step; it overrides Rate.
	Schedule op.Output
	L1, L2   float64 // strengths of regularization
}

// NewProximalGradientDescent returns the optimizer without regularization.
func NewProximalGradientDescent(rate float64) *ProximalGradientDescent {
	return &ProximalGradientDescent{Rate: rate}
}

// Name implements [Optimizer].
func (*ProximalGradientDescent) Name() string { return "ProximalGradientDescent" }

// Begin implements [Optimizer].
func (o *ProximalGradientDescent) Begin(_ []*Variable, _, inner *op.Scope) Updater {
	return &kernelUpdater{kernel: "ProximalGradientDescent", values: map[string]op.Output{
		"alpha": rateOf(inner, o.Rate, o.Schedule), "l1": hyper(inner, "l1_regularization_strength", o.L1),
		"l2": hyper(inner, "l2_regularization_strength", o.L2),
	}}
}

// ProximalAdagrad is Adagrad that shrinks variables by regularization after each step (Duchi and
// Singer, 2009).
type ProximalAdagrad struct {
	Rate float64 // learning rate
	// Schedule is the learning rate as a scalar output, computed in each step; it overrides Rate.
	Schedule op.Output
	Initial  float64 // initial value of the sums of squared gradients
	L1, L2   float64 // strengths of regularization
}

// NewProximalAdagrad returns the optimizer with sums that start at 0.1 and no regularization.
func NewProximalAdagrad(rate float64) *ProximalAdagrad {
	return &ProximalAdagrad{Rate: rate, Initial: 0.1}
}

// Name implements [Optimizer].
func (*ProximalAdagrad) Name() string { return "ProximalAdagrad" }

// Begin implements [Optimizer].
func (o *ProximalAdagrad) Begin(vars []*Variable, outer, inner *op.Scope) Updater {
	return &kernelUpdater{
		kernel: "ProximalAdagrad", slots: newSlots(outer, o.Name(), vars, slotKind{"accum", Constant(o.Initial)}),
		values: map[string]op.Output{
			"lr": rateOf(inner, o.Rate, o.Schedule), "l1": hyper(inner, "l1_regularization_strength", o.L1),
			"l2": hyper(inner, "l2_regularization_strength", o.L2),
		},
	}
}
