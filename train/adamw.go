package train

import (
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
)

// AdamW is [Adam] with weight decay: each update first subtracts the fraction WeightDecay times the
// learning rate from the variable (Loshchilov and Hutter, 2019). Variables of one dimension, such
// as biases, decay too.
type AdamW struct {
	Adam
	WeightDecay float64
}

// NewAdamW returns the optimizer with the settings of [NewAdam].
func NewAdamW(rate, weightDecay float64) *AdamW { return &AdamW{*NewAdam(rate), weightDecay} }

// Begin implements [Optimizer].
func (o *AdamW) Begin(vars []*Variable, outer, inner *op.Scope) Updater {
	u := o.Adam.Begin(vars, outer, inner)
	rate := rateOf(inner, o.Rate, o.Schedule)
	return &decayUpdater{u, op.Mul(inner, rate, hyper(inner, "weight_decay", o.WeightDecay))}
}

// decayUpdater shrinks variables before another updater changes them.
type decayUpdater struct {
	Updater
	fraction op.Output // scalar
}

// Dense implements [Updater].
func (u *decayUpdater) Dense(s *op.Scope, v *Variable, grad op.Output) *graph.Node {
	return u.Updater.Dense(s.WithControlDependencies(u.shrink(s, v)), v, grad)
}

// Sparse implements [Updater]. All rows shrink.
func (u *decayUpdater) Sparse(s *op.Scope, v *Variable, values, indices op.Output) *graph.Node {
	return u.Updater.Sparse(s.WithControlDependencies(u.shrink(s, v)), v, values, indices)
}

func (u *decayUpdater) shrink(s *op.Scope, v *Variable) *graph.Node {
	return v.AssignSub(s, op.Mul(s, v.Value, castTo(s, u.fraction, v.DType)))
}
