package nn

import "github.com/weft-ml/weft/op"

// GRU is a gated recurrent unit (Cho et al., 2014) whose reset gate is applied after the matrix
// multiplication. The columns of its variables are those of the gates z, r and h. The variable
// "bias" has two rows, for the input and for the state.
type GRU Recurrent

// Apply implements [Layer].
func (l *GRU) Apply(c *Context, x op.Output) op.Output {
	r, cell := l.settings()
	return r.apply(c.Layer(l, cell.kind), cell, x, c.Mask(x), r.GoBackwards)
}

func (l *GRU) settings() (*Recurrent, cell) {
	return (*Recurrent)(l), cell{kind: "gru", gates: 3, states: 1, step: gruStep}
}

func gruStep(s *op.Scope, x op.Output, states []op.Output, w *recurrentWeights) []op.Output {
	h := states[0]
	inner := op.MatMul(s, h, w.recurrent)
	if w.biasRecurrent.Node != nil {
		inner = op.BiasAdd(s, inner, w.biasRecurrent)
	}
	fromX, fromH := split(s, x, 3), split(s, inner, 3)
	update := op.Sigmoid(s, op.AddV2(s, fromX[0], fromH[0]))
	reset := op.Sigmoid(s, op.AddV2(s, fromX[1], fromH[1]))
	candidate := op.Tanh(s, op.AddV2(s, fromX[2], op.Mul(s, reset, fromH[2])))
	return []op.Output{op.AddV2(s, candidate, op.Mul(s, update, op.Sub(s, h, candidate)))}
}

// SimpleRNN is a fully connected layer of the input and the last output, with the hyperbolic
// tangent.
type SimpleRNN Recurrent

// Apply implements [Layer].
func (l *SimpleRNN) Apply(c *Context, x op.Output) op.Output {
	r, cell := l.settings()
	return r.apply(c.Layer(l, cell.kind), cell, x, c.Mask(x), r.GoBackwards)
}

func (l *SimpleRNN) settings() (*Recurrent, cell) {
	return (*Recurrent)(l), cell{kind: "simple_rnn", gates: 1, states: 1,
		step: func(s *op.Scope, x op.Output, states []op.Output, w *recurrentWeights) []op.Output {
			return []op.Output{op.Tanh(s, op.AddV2(s, x, op.MatMul(s, states[0], w.recurrent)))}
		}}
}
