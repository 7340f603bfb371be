package rnn

import (
	"github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/tensor"
)

// gpuGRU is a layer on a device.
type gpuGRU struct {
	*gru
	*scratch
	// weights of both gates and of the candidate, for inputs and for cells
	gateIn, gateCell, newIn, newCell *tensor.Tensor
}

func (g *gru) onDevice(ctx *kernel.Context, d *device.Device) *gpuGRU {
	l := &gpuGRU{gru: g, scratch: &scratch{d: d, dtype: ctx.Input(0).DType()}}
	for _, part := range []struct {
		to            **tensor.Tensor
		input, lo, hi int
	}{
		{&l.gateIn, 2, 0, g.input},
		{&l.gateCell, 2, g.input, g.input + g.cells},
		{&l.newIn, 3, 0, g.input},
		{&l.newCell, 3, g.input, g.input + g.cells},
	} {
		rows := ctx.Input(part.input).Rows(part.lo, part.hi)
		*part.to = &rows
	}
	return l
}

// launch queues a kernel for all cells.
func (l *gpuGRU) launch(name string, args ...any) error {
	n := int64(l.batch * l.cells)
	return l.d.LaunchLine("gru_f32"+name, n, append(args, n, int32(l.cells))...)
}

// cellOnDevice computes GRUBlockCell.
func (g *gru) cellOnDevice(ctx *kernel.Context, d *device.Device) error {
	shape := matrixShape(g.batch, g.cells)
	out, err := allocateAll(ctx, d, 0, false, shape, shape, shape, shape)
	if err != nil || g.batch*g.cells == 0 {
		return err
	}
	l := g.onDevice(ctx, d)
	defer l.release()
	x, before := ctx.Input(0), ctx.Input(1)
	r, u, c, h := out[0], out[1], out[2], out[3]
	fromX, err := l.product(x, l.gateIn, false)
	if err != nil {
		return err
	}
	fromH, err := l.product(before, l.gateCell, false)
	if err != nil {
		return err
	}
	kept, err := l.alloc(g.batch, g.cells)
	if err != nil {
		return err
	}
	if err := l.launch("", r, u, kept, fromX, fromH, ctx.Input(4), before); err != nil {
		return err
	}
	if fromX, err = l.product(x, l.newIn, false); err != nil {
		return err
	}
	if fromH, err = l.product(kept, l.newCell, false); err != nil {
		return err
	}
	return l.launch("_state", c, h, fromX, fromH, ctx.Input(5), u, before)
}

// gradOnDevice computes GRUBlockCellGrad.
func (g *gru) gradOnDevice(ctx *kernel.Context, d *device.Device) error {
	n := g.cells
	out, err := allocateAll(ctx, d, 0, false, matrixShape(g.batch, g.input), matrixShape(g.batch, n), matrixShape(g.batch, n), matrixShape(g.batch, 2*n))
	if err != nil || g.batch*n == 0 {
		return err
	}
	l := g.onDevice(ctx, d)
	defer l.release()
	dx, dhPrev, dc, dru := out[0], out[1], out[2], out[3]
	before, r, u, c, dh := ctx.Input(1), ctx.Input(6), ctx.Input(7), ctx.Input(8), ctx.Input(9)
	if err := l.launch("_candidate", dc, dru, u, c, before, dh); err != nil {
		return err
	}
	dKept, err := l.product(dc, l.newCell, true)
	if err != nil {
		return err
	}
	back, err := l.alloc(g.batch, n)
	if err != nil {
		return err
	}
	if err := l.launch("_reset", back, dru, dKept, r, u, before, dh); err != nil {
		return err
	}
	if err := l.sum(dhPrev, back, dru, l.gateCell); err != nil {
		return err
	}
	fromNew, err := l.product(dc, l.newIn, true)
	if err != nil {
		return err
	}
	return l.sum(dx, fromNew, dru, l.gateIn)
}

// sum sets out to a plus d·wᵀ.
func (l *gpuGRU) sum(out, a, d, w *tensor.Tensor) error {
	b, err := l.product(d, w, true)
	if err != nil {
		return err
	}
	n := int64(out.NumElements())
	return l.d.LaunchLine("add_f32", n, out, a, b, n, int32(1), int32(1))
}
