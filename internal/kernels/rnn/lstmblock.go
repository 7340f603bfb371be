package rnn

import (
	"context"

	"github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
)

func init() {
	in := append([]string{"seq_len_max: int64"}, cellIn...)
	for _, v := range []struct {
		suffix string
		attrs  []string
		layout layout
	}{
		{"", []string{"forget_bias: float = 1.0", "cell_clip: float = 3.0"}, icfo},
		{"V2", []string{"cell_clip: float = 0.0"}, ifco},
	} {
		kernel.RegisterNew(opdef.Def{
			Name: "BlockLSTM" + v.suffix, Doc: "Computes a layer of LSTM cells over all time steps. Returns the gates, cell states and outputs of every step.",
			In: in, Out: gateOut, Attrs: append(v.attrs, "use_peephole: bool = false", "T: {half, float}"), Shape: blockShape,
		}, v.layout.newBlock)
		kernel.RegisterNew(opdef.Def{
			Name: "BlockLSTMGrad" + v.suffix, Doc: "Computes the gradient of BlockLSTM" + v.suffix + ".",
			In: append(append(append([]string{}, in...), gateOut...), "cs_grad: T", "h_grad: T"),
			Out: []string{"x_grad: T", "cs_prev_grad: T", "h_prev_grad: T", "w_grad: T", "wci_grad: T", "wcf_grad: T", "wco_grad: T",
				"b_grad: T"},
			Attrs: []string{"use_peephole: bool", "T: {half, float}"}, Shape: blockGradShape,
		}, v.layout.newBlockGrad)
	}
}

func blockShape(c *opdef.ShapeContext) error {
	x, err := opdef.WithRank(c.In[1], 3)
	if err != nil {
		return err
	}
	b, err := opdef.WithRank(c.In[8], 1)
	if err != nil {
		return err
	}
	cells, err := shapefn.Divide(b.Dim(0), 4)
	if err != nil {
		return err
	}
	c.SetAll(shapefn.Of(x.Dim(0), x.Dim(1), cells))
	return nil
}

func blockGradShape(c *opdef.ShapeContext) error {
	if err := shapefn.CheckRanks(c, 1, 3, 2, 2, 2, 1, 1, 1, 1); err != nil {
		return err
	}
	for i, rank := range []int{3, 2, 2, 2, 1, 1, 1, 1} {
		c.Out[i], _ = opdef.WithRank(c.In[1+i], rank)
	}
	return nil
}

// sequence is a layer that runs over time steps.
type sequence struct {
	lstm
	steps, run int // total number of steps, and number of steps to run
}

// check reads the number of steps to run.
func (s *sequence) check(ctx *kernel.Context) error {
	length := ctx.Input(0)
	if length.Rank() != 0 {
		return status.InvalidArgumentf("`seq_len_max_tensor` must be rank 0 but is rank %d", length.Rank())
	}
	x := ctx.Input(1)
	s.steps, s.batch, s.input = x.Dim(0), x.Dim(1), x.Dim(2)
	run := intarg.Scalar(length)
	if run < 0 || run > int64(s.steps) {
		return status.InvalidArgumentf("seq_len_max must be between 0 and the %d steps of x, but is %d", s.steps, run)
	}
	s.run = int(run)
	return nil
}

func (layout layout) newBlock(c *kernel.Construction) (kernel.Kernel, error) {
	bias, clip, peephole := c.Attrs.Float("forget_bias"), c.Attrs.Float("cell_clip"), c.Attrs.Bool("use_peephole")
	return kernel.Func(func(ctx *kernel.Context) error {
		e := &elements{ctx: ctx}
		s := &sequence{lstm: lstm{layout: layout, peephole: peephole, forgetBias: bias, clip: clip}}
		if err := s.inputs(ctx, e); err != nil {
			return err
		}
		if d := device.Of(ctx.Input(1)); d != nil {
			return s.computeOnDevice(ctx, d)
		}
		out, err := allocateGates(e, append(ctx.Input(1).Shape()[:2:2], int64(s.cells)))
		if err != nil {
			return err
		}
		if err := s.compute(ctx.Context(), e.in(1), e.in(2), e.in(3), out); err != nil {
			return err
		}
		e.finish()
		return nil
	}), nil
}

// inputs checks the inputs of BlockLSTM and reads the weights.
func (s *sequence) inputs(ctx *kernel.Context, e *elements) error {
	dims := func(input, rank int, name string, dims ...expectedDim) expected {
		return expected{input: input, rank: rank, text: name + " must be " + string(rune('0'+rank)) + "D", dims: dims}
	}
	x := dims(1, 3, "x")
	if err := x.check(ctx); err != nil {
		return err
	}
	if err := s.check(ctx); err != nil {
		return err
	}
	cs := dims(2, 2, "cs_prev", expectedDim{0, "cs_prev.dims(0)", "batch_size", s.batch})
	if err := cs.check(ctx); err != nil {
		return err
	}
	s.cells = ctx.Input(2).Dim(1)
	n := s.cells
	size := func(name, want string, n int) expectedDim { return expectedDim{0, name + ".dim_size(0)", want, n} }
	if err := checkAll(ctx, []expected{
		dims(3, 2, "h_prev", expectedDim{0, "h_prev.dims(0)", "batch_size", s.batch}, expectedDim{1, "h_prev.dims(1)", "cell_size", n}),
		dims(4, 2, "w", size("w", "input_size + cell_size", s.input+n), expectedDim{1, "w.dim_size(1)", "cell_size * 4", 4 * n}),
		dims(5, 1, "wci", size("wci", "cell_size", n)), dims(6, 1, "wcf", size("wcf", "cell_size", n)),
		dims(7, 1, "wco", size("wco", "cell_size", n)), dims(8, 1, "b", size("b", "cell_size * 4", 4*n)),
	}); err != nil {
		return err
	}
	s.w, s.wci, s.wcf, s.wco, s.b = e.in(4), e.in(5), e.in(6), e.in(7), e.in(8)
	return nil
}

// compute runs the steps until ctx ends. A single product computes the contributions of the inputs
// to all of them.
func (s *sequence) compute(ctx context.Context, x, cs, h []float32, out gates) error {
	n, width := s.batch*s.cells, s.batch*4*s.cells
	if n == 0 {
		return nil // there is any number of steps without cells
	}
	sums := membudget.Make[float32](s.run * width)
	s.fromInputs(sums, x[:s.run*s.batch*s.input])
	for t := range s.run {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		step := out.step(t, n)
		s.forward(sums[t*width:(t+1)*width], cs, h, step)
		cs, h = step.cs, step.h
	}
	return nil
}
