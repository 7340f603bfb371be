package rnn

import (
	"github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

var (
	cellIn  = []string{"x: T", "cs_prev: T", "h_prev: T", "w: T", "wci: T", "wcf: T", "wco: T", "b: T"}
	gateOut = []string{"i: T", "cs: T", "f: T", "o: T", "ci: T", "co: T", "h: T"}
)

func init() {
	kernel.RegisterNew(opdef.Def{
		Name: "LSTMBlockCell", Doc: "Computes one time step of a layer of LSTM cells. Returns the gates, cell states and outputs.",
		In: cellIn, Out: gateOut,
		Attrs: []string{"forget_bias: float = 1.0", "cell_clip: float = 3.0", "use_peephole: bool = false", "T: {half, float}"},
		Shape: lstmCellShape,
	}, newLSTMCell)
	kernel.RegisterNew(opdef.Def{
		Name: "LSTMBlockCellGrad", Doc: "Computes the gradients of LSTMBlockCell with respect to the gates, the previous cell states and the peephole weights.",
		In:    append(append(append([]string{}, cellIn...), gateOut[:6]...), "cs_grad: T", "h_grad: T"),
		Out:   []string{"cs_prev_grad: T", "dicfo: T", "wci_grad: T", "wcf_grad: T", "wco_grad: T"},
		Attrs: []string{"use_peephole: bool", "T: {half, float}"}, Shape: lstmCellGradShape,
	}, newLSTMCellGrad)
}

// cellShape returns the batch size and the number of cells.
func cellShape(c *opdef.ShapeContext) (batch, cells int64, err error) {
	x, err := opdef.WithRank(c.In[0], 2)
	if err != nil {
		return 0, 0, err
	}
	cs, err := opdef.WithRank(c.In[1], 2)
	if err != nil {
		return 0, 0, err
	}
	return x.Dim(0), cs.Dim(1), nil
}

func lstmCellShape(c *opdef.ShapeContext) error {
	batch, cells, err := cellShape(c)
	if err == nil {
		c.SetAll(shapefn.Of(batch, cells))
	}
	return err
}

func lstmCellGradShape(c *opdef.ShapeContext) error {
	batch, cells, err := cellShape(c)
	if err == nil {
		c.SetAll(shapefn.Of(cells))
		c.Out[0], c.Out[1] = shapefn.Of(batch, cells), shapefn.Of(batch, shapefn.Times(cells, 4))
	}
	return err
}

// newCell checks the inputs and returns the layer for one step.
func newCell(ctx *kernel.Context, e *elements, peephole bool) (*lstm, error) {
	rank := func(input, rank int, name string) expected {
		want := "2"
		if rank == 1 {
			want = "1"
		}
		return expected{input: input, rank: rank, text: name + "_tensor must be rank " + want + " but is rank #."}
	}
	if err := checkAll(ctx, []expected{rank(0, 2, "x"), rank(1, 2, "cs_prev")}); err != nil {
		return nil, err
	}
	x, cs := ctx.Input(0), ctx.Input(1)
	l := &lstm{layout: icfo, batch: x.Dim(0), input: x.Dim(1), cells: cs.Dim(1), peephole: peephole}
	n := l.cells
	hPrev, w, b := rank(2, 2, "h_prev"), rank(3, 2, "w"), rank(7, 1, "b")
	hPrev.dims = []expectedDim{{0, "h_prev.dims(0)", "batch_size", l.batch}, {1, "h_prev.dims(1)", "cell_size", n}}
	w.dims = []expectedDim{{0, "w.dim_size(0)", "input_size + cell_size", l.input + n}, {1, "w.dim_size(1)", "cell_size * 4", 4 * n}}
	b.dims = []expectedDim{{0, "b.dim_size(0)", "cell_size * 4", 4 * n}}
	batch := expected{input: 1, rank: 2, dims: []expectedDim{{0, "cs_prev.dims(0)", "batch_size", l.batch}}}
	peeps := []expected{rank(4, 1, "wci"), rank(5, 1, "wcf"), rank(6, 1, "wco")}
	if err := checkAll(ctx, append([]expected{batch, hPrev, w, b}, peeps...)); err != nil {
		return nil, err
	}
	l.w, l.b, l.wci, l.wcf, l.wco = e.in(3), e.in(7), e.in(4), e.in(5), e.in(6)
	return l, l.checkPeepholes(ctx, 4)
}

// checkPeepholes checks that there is one peephole weight per cell in inputs first to first+2 if
// peepholes are used.
func (l *lstm) checkPeepholes(ctx *kernel.Context, first int) error {
	for i, name := range []string{"wci", "wcf", "wco"} {
		if n := ctx.Input(first + i).NumElements(); l.peephole && n != l.cells {
			return status.InvalidArgumentf("%s.dim_size(0) != cell_size: %d vs. %d", name, n, l.cells)
		}
	}
	return nil
}

func newLSTMCell(c *kernel.Construction) (kernel.Kernel, error) {
	bias, clip, peephole := c.Attrs.Float("forget_bias"), c.Attrs.Float("cell_clip"), c.Attrs.Bool("use_peephole")
	return kernel.Func(func(ctx *kernel.Context) error {
		e := &elements{ctx: ctx}
		l, err := newCell(ctx, e, peephole)
		if err != nil {
			return err
		}
		l.forgetBias, l.clip = bias, clip
		if l.batch == 0 || l.cells == 0 {
			return status.InvalidArgumentf("cs_prev_tensor is empty, has shape: (%d,%d).", l.batch, l.cells)
		}
		if d := device.Of(ctx.Input(0)); d != nil {
			return l.cellOnDevice(ctx, d)
		}
		out, err := allocateGates(e, matrixShape(l.batch, l.cells))
		if err != nil {
			return err
		}
		sums := membudget.Make[float32](l.batch * 4 * l.cells)
		l.fromInputs(sums, e.in(0))
		l.forward(sums, e.in(1), e.in(2), out)
		e.finish()
		return nil
	}), nil
}

// allocateGates allocates the seven outputs.
func allocateGates(e *elements, shape tensor.Shape) (out gates, err error) {
	for i, v := range []*[]float32{&out.i, &out.cs, &out.f, &out.o, &out.ci, &out.co, &out.h} {
		if *v, err = e.out(i, shape); err != nil {
			return out, err
		}
	}
	return out, nil
}

func newLSTMCellGrad(c *kernel.Construction) (kernel.Kernel, error) {
	peephole := c.Attrs.Bool("use_peephole")
	return kernel.Func(func(ctx *kernel.Context) error {
		e := &elements{ctx: ctx}
		l, err := newCell(ctx, e, peephole)
		if err != nil {
			return err
		}
		if err := l.checkGates(ctx); err != nil {
			return err
		}
		if d := device.Of(ctx.Input(0)); d != nil {
			return l.cellGradOnDevice(ctx, d)
		}
		csPrevGrad, err := e.out(0, matrixShape(l.batch, l.cells))
		if err != nil {
			return err
		}
		dGates, err := e.out(1, matrixShape(l.batch, 4*l.cells))
		if err != nil {
			return err
		}
		peep, err := allocatePeepGrads(e, 2, 4)
		if err != nil {
			return err
		}
		at := gates{i: e.in(8), cs: e.in(9), f: e.in(10), o: e.in(11), ci: e.in(12), co: e.in(13)}
		at.h = at.co // unused
		l.backward(at, e.in(1), e.in(14), e.in(15), dGates, csPrevGrad, peep)
		e.finish()
		return nil
	}), nil
}

// allocatePeepGrads allocates outputs first to first+2. They have the shapes of the weights in
// inputs in to in+2.
func allocatePeepGrads(e *elements, first, in int) (p peepGrads, err error) {
	for i, v := range []*[]float32{&p.wci, &p.wcf, &p.wco} {
		if *v, err = e.out(first+i, e.ctx.Input(in+i).Shape()); err != nil {
			return p, err
		}
	}
	return p, nil
}

// checkGates checks the gates of a step and the gradients that the gradient operation receives.
func (l *lstm) checkGates(ctx *kernel.Context) error {
	for i, name := range []string{"i", "cs", "f", "o", "ci", "co", "cs_grad_tensor", "h_grad_tensor"} {
		size := name + ".dim_size"
		if i > 5 {
			size = name + ".dims"
		}
		second := size
		if name == "f" {
			second = "i.dim_size" // as TensorFlow writes it
		}
		want := expected{input: 8 + i, rank: 2, text: name + " must be rank 2 but is rank #.", dims: []expectedDim{
			{0, size + "(0)", "batch_size", l.batch}, {1, second + "(1)", "cell_size", l.cells},
		}}
		if err := want.check(ctx); err != nil {
			return err
		}
	}
	return nil
}
