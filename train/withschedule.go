package train

import "github.com/weft-ml/weft/op"

// The methods withSchedule return a copy of an optimizer whose learning rate is an output.

func (o Adam) withSchedule(rate op.Output) Optimizer {
	o.Schedule = rate
	return &o
}

func (o AdamW) withSchedule(rate op.Output) Optimizer {
	o.Schedule = rate
	return &o
}

func (o GradientDescent) withSchedule(rate op.Output) Optimizer {
	o.Schedule = rate
	return &o
}

func (o Momentum) withSchedule(rate op.Output) Optimizer {
	o.Schedule = rate
	return &o
}

func (o RMSProp) withSchedule(rate op.Output) Optimizer {
	o.Schedule = rate
	return &o
}

func (o Adagrad) withSchedule(rate op.Output) Optimizer {
	o.Schedule = rate
	return &o
}

func (o Adadelta) withSchedule(rate op.Output) Optimizer {
	o.Schedule = rate
	return &o
}

func (o Ftrl) withSchedule(rate op.Output) Optimizer {
	o.Schedule = rate
	return &o
}
