package train

import (
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Adagrad divides the learning rate of each element by the root of the sum of its squared gradients
// (Duchi et al., 2011).
type Adagrad struct {
	Rate float64 // learning rate
	// Schedule is the learning rate as a scalar output, computed in each step; it overrides Rate.
	Schedule op.Output
	Initial  float64 // initial value of the sums
}

// NewAdagrad returns the optimizer with sums that start at 0.1.
func NewAdagrad(rate float64) *Adagrad { return &Adagrad{Rate: rate, Initial: 0.1} }

// Name implements [Optimizer].
func (*Adagrad) Name() string { return "Adagrad" }

// Begin implements [Optimizer].
func (o *Adagrad) Begin(vars []*Variable, outer, inner *op.Scope) Updater {
	return &kernelUpdater{
		kernel: "Adagrad", slots: newSlots(outer, o.Name(), vars, slotKind{"accum", Constant(o.Initial)}),
		values: map[string]op.Output{"lr": rateOf(inner, o.Rate, o.Schedule)},
	}
}

// AdagradDA is Adagrad with dual averaging and regularization (Duchi et al., 2011), for sparse
// models: an element stays zero until its gradients outweigh L1.
type AdagradDA struct {
	Rate float64 // learning rate
	// Schedule is the learning rate as a scalar output, computed in each step; it overrides Rate.
	Schedule op.Output
	Step     *Variable // number of completed steps, such as the [GlobalStep]
	Initial  float64   // initial value of the sums of squared gradients
	L1, L2   float64   // strengths of regularization
}

// NewAdagradDA returns the optimizer with sums that start at 0.1 and no regularization.
func NewAdagradDA(rate float64, step *Variable) *AdagradDA {
	return &AdagradDA{Rate: rate, Step: step, Initial: 0.1}
}

// Name implements [Optimizer].
func (*AdagradDA) Name() string { return "AdagradDA" }

// Begin implements [Optimizer].
func (o *AdagradDA) Begin(vars []*Variable, outer, inner *op.Scope) Updater {
	if o.Step == nil {
		inner.Fail(status.InvalidArgumentf("train: AdagradDA.Step must be set"))
		return &kernelUpdater{}
	}
	kinds := []slotKind{{"gradient_accumulator", Zeros}, {"gradient_squared_accumulator", Constant(o.Initial)}}
	step := op.Identity(inner, o.Step.Value)
	return &kernelUpdater{
		kernel: "AdagradDA", slots: newSlots(outer, o.Name(), vars, kinds...),
		values: map[string]op.Output{
			"lr": rateOf(inner, o.Rate, o.Schedule), "l1": hyper(inner, "l1_regularization_strength", o.L1),
			"l2":          hyper(inner, "l2_regularization_strength", o.L2),
			"global_step": castTo(inner, op.AddV2(inner, step, op.ConstOf(inner, o.Step.DType, 1)), tensor.Int64),
		},
	}
}

// Adadelta scales the gradient by the ratio of the running means of squared updates and of squared
// gradients (Zeiler, 2012).
type Adadelta struct {
	Rate float64 // learning rate; 1 in the paper
	// Schedule is the learning rate as a scalar output, computed in each step; it overrides Rate.
	Schedule op.Output
	Rho      float64 // decay of the running means
	Epsilon  float64 // added to the running means
}

// NewAdadelta returns the optimizer with a decay of 0.95 and an epsilon of 1e-8.
func NewAdadelta(rate float64) *Adadelta { return &Adadelta{Rate: rate, Rho: 0.95, Epsilon: 1e-8} }

// Name implements [Optimizer].
func (*Adadelta) Name() string { return "Adadelta" }

// Begin implements [Optimizer].
func (o *Adadelta) Begin(vars []*Variable, outer, inner *op.Scope) Updater {
	return &kernelUpdater{
		kernel: "Adadelta", slots: newSlots(outer, o.Name(), vars, slotKind{"accum", Zeros}, slotKind{"accum_update", Zeros}),
		values: map[string]op.Output{
			"lr": rateOf(inner, o.Rate, o.Schedule), "rho": hyper(inner, "rho", o.Rho), "epsilon": hyper(inner, "epsilon", o.Epsilon),
		},
	}
}
