package nn

import (
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/train"
)

// Recurrent holds the settings of a recurrent layer. Its input has shape [batch, time, features].
// Where the mask of the input is false, the state and the output stay what they were.
type Recurrent struct {
	Units           int
	ReturnSequences bool    // return all steps, [batch, time, Units], not [batch, Units]
	GoBackwards     bool    // begin with the last step
	Dropout         float64 // fraction of the inputs to drop in training, the same in all steps
	NoBias          bool

	KernelInit    train.Initializer // [train.GlorotUniform] if nil
	RecurrentInit train.Initializer // [Orthogonal] if nil
	BiasInit      train.Initializer // zeros if nil; see the layer
}

// A cell is the function of one step of a recurrent layer.
type cell struct {
	kind   string // name of the layer
	gates  int    // units of the kernel, in multiples of Recurrent.Units
	states int
	// step computes the next states, from the projection of the input on the kernel; the first
	// state is the output
	step func(s *op.Scope, x op.Output, states []op.Output, w *recurrentWeights) []op.Output
}

// recurrentWeights are the variables of a recurrent layer. bias is the zero Output without one.
type recurrentWeights struct {
	kernel, recurrent, bias op.Output
	biasRecurrent           op.Output // added to the projection of the state; may be zero
}

// Run applies a layer from given initial states, such as those of an encoder, which are matrices
// [batch, Units]. It returns the output and the last states: of [LSTM] the output and the cell, of
// others the output.
func Run(c *Context, l RecurrentLayer, x op.Output, states ...op.Output) (y op.Output, last []op.Output) {
	r, cell := l.settings()
	return r.run(c.Layer(l, cell.kind), cell, x, c.Mask(x), states, r.GoBackwards)
}

// RecurrentLayer is one of [LSTM], [GRU] and [SimpleRNN].
type RecurrentLayer interface {
	Layer
	settings() (*Recurrent, cell)
}

// apply applies the layer to x from initial states of zeros.
func (r *Recurrent) apply(c *Context, cell cell, x op.Output, mask op.Output, backwards bool) op.Output {
	y, _ := r.run(c, cell, x, mask, nil, backwards)
	return y
}

func (r *Recurrent) run(c *Context, cell cell, x, mask op.Output, states []op.Output, backwards bool) (op.Output, []op.Output) {
	s, features := c.Scope, c.size(x, 2, 3)
	switch {
	case features == 0:
		return op.Output{}, nil
	case r.Units < 1:
		c.fail("the layer has %d units", r.Units)
		return op.Output{}, nil
	case len(states) != 0 && len(states) != cell.states:
		c.fail("%d initial states, want %d", len(states), cell.states)
		return op.Output{}, nil
	}
	w := r.weights(c, cell, features)
	in := c.cast(x)
	if c.Training && r.Dropout > 0 {
		in = op.Mul(s, in, c.drop(op.OnesLike(s, op.Slice(s, in, ints(s, 0, 0, 0), ints(s, -1, 1, -1))), r.Dropout))
	}
	in = transpose(s, in, 1, 0, 2)
	if mask.Node != nil {
		mask = transpose(s, mask, 1, 0)
	}
	if backwards {
		in = op.ReverseV2(s, in, ints(s, 0))
		if mask.Node != nil {
			mask = op.ReverseV2(s, mask, ints(s, 0))
		}
	}
	if len(states) == 0 {
		zero := op.Fill(s, op.Pack(s, []op.Output{dim(s, in, 1), op.Const(s, int32(r.Units))}), like(s, in, 0))
		for range cell.states {
			states = append(states, zero)
		}
	}
	var all op.Output
	var last []op.Output
	if cell.kind == "lstm" && mask.Node == nil {
		all, last = blockLSTM(s, in, states, w, r.Units)
	} else {
		all, last = scan(s, cell, in, mask, states, w, r.Units)
	}
	if all.Node == nil {
		return op.Output{}, nil
	}
	y := last[0]
	if r.ReturnSequences {
		y = transpose(s, all, 1, 0, 2)
	}
	return c.done(x, y, r.ReturnSequences), last
}

func (r *Recurrent) weights(c *Context, cell cell, features int64) *recurrentWeights {
	units := int64(r.Units)
	wide := int64(cell.gates) * units
	w := &recurrentWeights{
		kernel: c.Weight(Weight{Name: "kernel", Shape: tensor.Shape{features, wide}, Init: or(r.KernelInit, train.GlorotUniform())}),
		recurrent: c.Weight(Weight{
			Name: "recurrent_kernel", Shape: tensor.Shape{units, wide}, Init: or(r.RecurrentInit, Orthogonal(1)),
		}),
	}
	if r.NoBias {
		return w
	}
	switch cell.kind {
	case "lstm":
		w.bias = c.Weight(Weight{Name: "bias", Shape: tensor.Shape{wide}, Init: or(r.BiasInit, forgetBias(units))})
	case "gru":
		both := c.Weight(Weight{Name: "bias", Shape: tensor.Shape{2, wide}, Init: or(r.BiasInit, train.Zeros)})
		if parts := op.Unpack(c.Scope, both, 2); len(parts) == 2 {
			w.bias, w.biasRecurrent = parts[0], parts[1]
		}
	default:
		w.bias = c.Weight(Weight{Name: "bias", Shape: tensor.Shape{wide}, Init: or(r.BiasInit, train.Zeros)})
	}
	return w
}

// scan runs a cell over the time, the first dimension of x. It returns the outputs of all steps and
// the last states. mask has shape [time, batch] or is the zero Output.
func scan(
	s *op.Scope, cell cell, x, mask op.Output, states []op.Output, w *recurrentWeights, units int,
) (op.Output, []op.Output) {
	projected := matMul(s, x, w.kernel)
	if w.bias.Node != nil {
		projected = addBias(s, projected, w.bias)
	}
	if projected.Node == nil {
		return op.Output{}, nil
	}
	steps := dim(s, x, 0)
	zero, one := op.Const(s, int32(0)), op.Const(s, int32(1))
	indices := op.Range(s, zero, steps, one)
	dtype := projected.DType().Base()
	in, inFlow := op.TensorArrayV3(s.Named("inputs"), steps, dtype)
	inFlow = op.TensorArrayScatterV3(s, in, indices, projected, inFlow)
	out, outFlow := op.TensorArrayV3(s.Named("outputs"), steps, dtype)
	var masks, maskFlow op.Output
	if mask.Node != nil {
		masks, maskFlow = op.TensorArrayV3(s.Named("masks"), steps, tensor.Bool)
		maskFlow = op.TensorArrayScatterV3(s, masks, indices, mask, maskFlow)
	}
	vars := append([]op.Output{zero, outFlow}, states...)
	vars = op.WhileLoop(s, vars,
		func(s *op.Scope, v []op.Output) op.Output { return op.Less(s, v[0], steps) },
		func(s *op.Scope, v []op.Output) []op.Output {
			xt := op.TensorArrayReadV3(s, in, v[0], inFlow, dtype)
			xt = op.EnsureShape(s, xt, tensor.MakePartial(-1, int64(units*cell.gates)))
			next := cell.step(s, xt, v[2:], w)
			if masks.Node != nil {
				keep := op.ExpandDims(s, op.TensorArrayReadV3(s, masks, v[0], maskFlow, tensor.Bool), one)
				for i := range next {
					next[i] = op.SelectV2(s, keep, next[i], v[2+i])
				}
			}
			for i := range next {
				next[i] = op.EnsureShape(s, next[i], s.ShapeOf(v[2+i]))
			}
			flow := op.TensorArrayWriteV3(s, out, v[0], next[0], v[1])
			return append([]op.Output{op.AddV2(s, v[0], one), flow}, next...)
		})
	if len(vars) == 0 {
		return op.Output{}, nil
	}
	all := op.TensorArrayGatherV3(s, out, indices, vars[1], dtype,
		op.TensorArrayGatherV3ElementShape(tensor.MakePartial(-1, int64(units))))
	return all, vars[2:]
}
