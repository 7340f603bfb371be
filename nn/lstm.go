package nn

import (
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/train"
)

// LSTM is a long short-term memory (Hochreiter and Schmidhuber, 1997). The columns of its variables
// are those of the gates i, f, c and o. The default bias of the forget gate f is 1.
type LSTM Recurrent

// Apply implements [Layer].
func (l *LSTM) Apply(c *Context, x op.Output) op.Output {
	r, cell := l.settings()
	return r.apply(c.Layer(l, cell.kind), cell, x, c.Mask(x), r.GoBackwards)
}

func (l *LSTM) settings() (*Recurrent, cell) {
	return (*Recurrent)(l), cell{kind: "lstm", gates: 4, states: 2, step: lstmStep}
}

func lstmStep(s *op.Scope, x op.Output, states []op.Output, w *recurrentWeights) []op.Output {
	g := split(s, op.AddV2(s, x, op.MatMul(s, states[0], w.recurrent)), 4)
	forget, in := op.Sigmoid(s, g[1]), op.Sigmoid(s, g[0])
	memory := op.AddV2(s, op.Mul(s, forget, states[1]), op.Mul(s, in, op.Tanh(s, g[2])))
	return []op.Output{op.Mul(s, op.Sigmoid(s, g[3]), op.Tanh(s, memory)), memory}
}

// forgetBias is the initializer of the bias: ones for the forget gate, zeros for the others.
func forgetBias(units int64) train.Initializer {
	return func(s *op.Scope, _ tensor.Shape, dtype tensor.DType) op.Output {
		zeros, ones := train.Zeros(s, tensor.Shape{units}, dtype), train.Ones(s, tensor.Shape{units}, dtype)
		return op.ConcatV2(s, []op.Output{zeros, ones, zeros, zeros}, op.Const(s, int32(0)))
	}
}

// blockLSTM runs all steps with one operation, in float32.
func blockLSTM(s *op.Scope, x op.Output, states []op.Output, w *recurrentWeights, units int) (op.Output, []op.Output) {
	wide := func(o op.Output) op.Output { return widen(s, o) }
	both := op.ConcatV2(s, []op.Output{wide(w.kernel), wide(w.recurrent)}, op.Const(s, int32(0)))
	zeros := op.Const(s, make([]float32, units)) // peepholes, which are not used
	bias := op.Const(s, make([]float32, 4*units))
	if w.bias.Node != nil {
		bias = wide(w.bias)
	}
	steps := op.Cast(s, dim(s, x, 0), tensor.Int64)
	_, cells, _, _, _, _, h := op.BlockLSTMV2(s, steps, wide(x), wide(states[1]), wide(states[0]), both, zeros, zeros, zeros, bias)
	last := func(all op.Output) op.Output {
		return castLike(s, op.StridedSlice(s, all, ints(s, -1), ints(s, 0), ints(s, 1), op.StridedSliceShrinkAxisMask(1), op.StridedSliceEndMask(1)), x)
	}
	return castLike(s, h, x), []op.Output{last(h), last(cells)}
}
