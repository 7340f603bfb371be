package train

import (
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
)

// hyper adds a hyperparameter as a constant.
func hyper(s *op.Scope, name string, v float64) op.Output {
	return op.ConstOf(s.Named(name), tensor.Float32, v)
}

// rateOf returns the output of a schedule, or the learning rate as a constant if there is no
// schedule.
func rateOf(s *op.Scope, rate float64, schedule op.Output) op.Output {
	if schedule.Node != nil {
		return schedule
	}
	return hyper(s, "learning_rate", rate)
}

// castTo returns x with the given element type.
func castTo(s *op.Scope, x op.Output, dtype tensor.DType) op.Output {
	if x.Node == nil || x.DType().Base() == dtype {
		return x
	}
	return op.Cast(s, x, dtype)
}
