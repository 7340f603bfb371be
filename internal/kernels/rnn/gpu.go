package rnn

import (
	"github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/internal/gpu/driver"
	"github.com/weft-ml/weft/internal/gpu/linalg"
	"github.com/weft-ml/weft/internal/gpu/source"
	"github.com/weft-ml/weft/internal/opkit/strided"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/tensor"
)

// On a device, products of matrices and kernels for all cells take turns. All tensors of this file
// are in the memory of the device.

// scratch holds intermediate results of a kernel on a device.
type scratch struct {
	d     *device.Device
	dtype tensor.DType
	held  []*tensor.Tensor
}

// alloc returns a matrix whose elements are undefined. It is valid until release.
func (s *scratch) alloc(rows, cols int) (*tensor.Tensor, error) {
	t, err := s.d.Alloc(s.dtype, matrixShape(rows, cols))
	if err != nil {
		return nil, err
	}
	s.held = append(s.held, &t)
	return &t, nil
}

func (s *scratch) release() {
	for _, t := range s.held {
		t.Release()
	}
}

// product returns a new matrix a·b, or a·bᵀ.
func (s *scratch) product(a, b *tensor.Tensor, transposed bool) (*tensor.Tensor, error) {
	cols := b.Dim(1)
	if transposed {
		cols = b.Dim(0)
	}
	c, err := s.alloc(a.Dim(0), cols)
	if err != nil {
		return nil, err
	}
	return c, multiply(s.d, c, a, b, false, transposed)
}

// multiply sets c to the product of two matrices. ta and tb say whether they are transposed first.
func multiply(d *device.Device, c, a, b *tensor.Tensor, ta, tb bool) error {
	p := driver.MatMul{Type: c.DType(), M: c.Dim(0), N: c.Dim(1), K: a.Dim(1), TransA: ta, TransB: tb, Batch: 1}
	if ta {
		p.K = a.Dim(0)
	}
	switch {
	case p.M == 0 || p.N == 0:
		return nil
	case p.K == 0:
		return d.Fill(c, 0)
	}
	return linalg.Product(d, c, a, b, p)
}

// matrix returns rows lo to hi of the matrix with the given number of columns that has the elements
// of t.
func matrix(t *tensor.Tensor, cols, lo, hi int) (*tensor.Tensor, error) {
	m, err := t.WithShape(matrixShape(t.NumElements()/max(1, cols), cols))
	if err != nil {
		return nil, err
	}
	m = m.Rows(lo, hi)
	return &m, nil
}

// gpuLSTM is a layer on a device.
type gpuLSTM struct {
	*lstm
	*scratch
	kernel           string
	ofInputs, ofCell *tensor.Tensor // weights
	bias             *tensor.Tensor
	peep             [3]*tensor.Tensor // weights of the input, forget and output gates
}

// onDevice returns the layer whose weights and biases are inputs w, peep to peep+2, and b.
func (l *lstm) onDevice(ctx *kernel.Context, d *device.Device, w, peep, b int) (*gpuLSTM, error) {
	g := &gpuLSTM{lstm: l, bias: ctx.Input(b), scratch: &scratch{d: d, dtype: ctx.Input(w).DType()}}
	g.kernel = "lstm_" + source.TypeName(g.dtype)
	for i := range g.peep {
		g.peep[i] = g.bias // not read
		if l.peephole {
			g.peep[i] = ctx.Input(peep + i)
		}
	}
	var err error
	if g.ofInputs, err = matrix(ctx.Input(w), 4*l.cells, 0, l.input); err != nil {
		return nil, err
	}
	g.ofCell, err = matrix(ctx.Input(w), 4*l.cells, l.input, l.input+l.cells)
	return g, err
}

func flag(b bool) int32 {
	if b {
		return 1
	}
	return 0
}

// step queues a step. sums are the products of its inputs with the weights, out are the gates.
func (g *gpuLSTM) step(sums, csPrev, hPrev *tensor.Tensor, out [7]*tensor.Tensor) error {
	recurrent, err := g.product(hPrev, g.ofCell, false)
	if err != nil {
		return err
	}
	n := int64(g.batch * g.cells)
	return g.d.LaunchLine(g.kernel, n, out[0], out[1], out[2], out[3], out[4], out[5], out[6], sums, recurrent, csPrev, g.bias,
		g.peep[0], g.peep[1], g.peep[2], n, int32(g.cells), int32(g.cell), int32(g.forget), g.forgetBias, g.clip, flag(g.peephole))
}

// gpuGates are the gates of a step, as gates.
type gpuGates struct{ i, cs, f, o, ci, co *tensor.Tensor }

// back queues the gradients of a step: those of the gates and of the previous states. csMore and
// hMore are added to the gradients of states and outputs unless they are nil.
func (g *gpuLSTM) back(dGates, csBack *tensor.Tensor, at gpuGates, csPrev, cs, csMore, h, hMore *tensor.Tensor) error {
	more := csMore != nil
	if !more {
		csMore, hMore = cs, h // not read
	}
	n := int64(g.batch * g.cells)
	return g.d.LaunchLine(g.kernel+"_grad", n, dGates, csBack, at.i, at.f, at.o, at.ci, at.co, csPrev, cs, csMore, h, hMore,
		g.peep[0], g.peep[1], g.peep[2], n, int32(g.cells), int32(g.cell), int32(g.forget), flag(more), flag(g.peephole))
}

// peepholes adds the gradients of the peephole weights for a step, or sets them if it is the first.
func (g *gpuLSTM) peepholes(out [3]*tensor.Tensor, dGates, csPrev, cs *tensor.Tensor, first bool) error {
	if !g.peephole {
		return nil
	}
	return g.d.LaunchLine(g.kernel+"_peep", int64(g.cells), out[0], out[1], out[2], dGates, csPrev, cs, int64(g.cells), int64(g.batch),
		int32(g.forget), flag(!first))
}

// allocateAll allocates outputs from first on, with the given shapes, and clears them if they may
// keep elements that no kernel sets.
func allocateAll(ctx *kernel.Context, d *device.Device, first int, clear bool, shapes ...tensor.Shape) ([]*tensor.Tensor, error) {
	var out []*tensor.Tensor
	for i, shape := range shapes {
		t, err := ctx.Allocate(first+i, shape)
		if err != nil {
			return nil, err
		}
		if clear {
			if err := d.Fill(t, 0); err != nil {
				return nil, err
			}
		}
		out = append(out, t)
	}
	return out, nil
}

// cellOnDevice computes LSTMBlockCell.
func (l *lstm) cellOnDevice(ctx *kernel.Context, d *device.Device) error {
	shape := matrixShape(l.batch, l.cells)
	out, err := allocateAll(ctx, d, 0, false, shape, shape, shape, shape, shape, shape, shape)
	if err != nil {
		return err
	}
	g, err := l.onDevice(ctx, d, 3, 4, 7)
	if err != nil {
		return err
	}
	defer g.release()
	sums, err := g.product(ctx.Input(0), g.ofInputs, false)
	if err != nil {
		return err
	}
	return g.step(sums, ctx.Input(1), ctx.Input(2), [7]*tensor.Tensor(out))
}

// cellGradOnDevice computes LSTMBlockCellGrad.
func (l *lstm) cellGradOnDevice(ctx *kernel.Context, d *device.Device) error {
	out, err := allocateAll(ctx, d, 0, false, matrixShape(l.batch, l.cells), matrixShape(l.batch, 4*l.cells))
	if err != nil {
		return err
	}
	peep, err := allocateAll(ctx, d, 2, true, ctx.Input(4).Shape(), ctx.Input(5).Shape(), ctx.Input(6).Shape())
	if err != nil {
		return err
	}
	g, err := l.onDevice(ctx, d, 3, 4, 7)
	if err != nil {
		return err
	}
	defer g.release()
	in, csPrev := ctx.Input, ctx.Input(1)
	at := gpuGates{i: in(8), cs: in(9), f: in(10), o: in(11), ci: in(12), co: in(13)}
	if err := g.back(out[1], out[0], at, csPrev, in(14), nil, in(15), nil); err != nil {
		return err
	}
	return g.peepholes([3]*tensor.Tensor(peep), out[1], csPrev, at.cs, true)
}

// computeOnDevice computes BlockLSTM. Steps that do not run are 0.
func (s *sequence) computeOnDevice(ctx *kernel.Context, d *device.Device) error {
	shape := tensor.Shape{int64(s.steps), int64(s.batch), int64(s.cells)}
	out, err := allocateAll(ctx, d, 0, s.run < s.steps, shape, shape, shape, shape, shape, shape, shape)
	if err != nil || s.run*s.batch*s.cells == 0 {
		return err
	}
	g, err := s.onDevice(ctx, d, 4, 5, 8)
	if err != nil {
		return err
	}
	defer g.release()
	x, err := matrix(ctx.Input(1), s.input, 0, s.run*s.batch)
	if err != nil {
		return err
	}
	all, err := g.product(x, g.ofInputs, false)
	if err != nil {
		return err
	}
	cs, h := ctx.Input(2), ctx.Input(3)
	for t := range s.run {
		var step [7]*tensor.Tensor
		for i := range step {
			if step[i], err = matrix(out[i], s.cells, t*s.batch, (t+1)*s.batch); err != nil {
				return err
			}
		}
		sums := all.Rows(t*s.batch, (t+1)*s.batch)
		if err := g.step(&sums, cs, h, step); err != nil {
			return err
		}
		cs, h = step[1], step[6]
	}
	return nil
}

// gradientOnDevice computes BlockLSTMGrad.
func (s *sequence) gradientOnDevice(ctx *kernel.Context, d *device.Device) error {
	var shapes []tensor.Shape
	for i := range 8 {
		shapes = append(shapes, ctx.Input(1+i).Shape())
	}
	out, err := allocateAll(ctx, d, 0, true, shapes...)
	if err != nil || s.run*s.batch*s.cells == 0 {
		return err
	}
	g, err := s.onDevice(ctx, d, 4, 5, 8)
	if err != nil {
		return err
	}
	defer g.release()
	rows := s.run * s.batch
	dGates, err := g.alloc(rows, 4*s.cells)
	if err != nil {
		return err
	}
	if err := g.backThrough(ctx, dGates, out); err != nil {
		return err
	}
	x, err1 := matrix(ctx.Input(1), s.input, 0, rows)
	dx, err2 := matrix(out[0], s.input, 0, rows)
	dwx, err3 := matrix(out[3], 4*s.cells, 0, s.input)
	dwh, err4 := matrix(out[3], 4*s.cells, s.input, s.input+s.cells)
	outputs, err5 := g.previousOutputs(ctx, rows)
	for _, err := range []error{err1, err2, err3, err4, err5} {
		if err != nil {
			return err
		}
	}
	if err := multiply(d, dx, dGates, g.ofInputs, false, true); err != nil {
		return err
	}
	if err := multiply(d, dwx, x, dGates, true, false); err != nil {
		return err
	}
	if err := multiply(d, dwh, outputs, dGates, true, false); err != nil {
		return err
	}
	return linalg.Reduce(d, "sum", out[7], dGates, 1, int64(rows), int64(4*s.cells), -1)
}

// backThrough runs backwards over the steps. It sets the gradients of the gates, and in out those
// of the first states and outputs and of the peephole weights. sequence.gradient is the same for a
// CPU.
func (g *gpuLSTM) backThrough(ctx *kernel.Context, dGates *tensor.Tensor, out []*tensor.Tensor) error {
	in := func(i, t int) (*tensor.Tensor, error) { return matrix(ctx.Input(i), g.cells, t*g.batch, (t+1)*g.batch) }
	steps := dGates.Dim(0) / g.batch
	var csMore, hMore *tensor.Tensor
	for t := steps - 1; t >= 0; t-- {
		var at [8]*tensor.Tensor // i, cs, f, o, ci, co, and the gradients of states and outputs
		var err error
		for i, input := range []int{9, 10, 11, 12, 13, 14, 16, 17} {
			if at[i], err = in(input, t); err != nil {
				return err
			}
		}
		csPrev := ctx.Input(2)
		if t > 0 {
			if csPrev, err = in(10, t-1); err != nil {
				return err
			}
		}
		csBack, hBack := out[1], out[2]
		if t > 0 {
			if csBack, err = g.alloc(g.batch, g.cells); err != nil {
				return err
			}
			if hBack, err = g.alloc(g.batch, g.cells); err != nil {
				return err
			}
		}
		step := dGates.Rows(t*g.batch, (t+1)*g.batch)
		gates := gpuGates{at[0], at[1], at[2], at[3], at[4], at[5]}
		if err := g.back(&step, csBack, gates, csPrev, at[6], csMore, at[7], hMore); err != nil {
			return err
		}
		if err := g.peepholes([3]*tensor.Tensor(out[4:7]), &step, csPrev, at[1], t == steps-1); err != nil {
			return err
		}
		if err := multiply(g.d, hBack, &step, g.ofCell, false, true); err != nil {
			return err
		}
		csMore, hMore = csBack, hBack
	}
	return nil
}

// previousOutputs returns a matrix with the outputs that each step began with.
func (g *gpuLSTM) previousOutputs(ctx *kernel.Context, rows int) (*tensor.Tensor, error) {
	all, err := g.alloc(rows, g.cells)
	if err != nil {
		return nil, err
	}
	first, rest := all.Rows(0, g.batch), all.Rows(g.batch, rows)
	h, err := matrix(ctx.Input(15), g.cells, 0, rows-g.batch)
	if err != nil {
		return nil, err
	}
	strided.Copy(&first, strided.Of(first.Shape()), ctx.Input(3), strided.Of(first.Shape()))
	if rows > g.batch {
		strided.Copy(&rest, strided.Of(rest.Shape()), h, strided.Of(rest.Shape()))
	}
	return all, nil
}
