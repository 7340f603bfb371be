package rnn

import (
	"github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/internal/numeric/gemm"
	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/numeric/simd"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
)

var gruIn = []string{"x: T", "h_prev: T", "w_ru: T", "w_c: T", "b_ru: T", "b_c: T"}

func init() {
	kernel.RegisterFunc(opdef.Def{
		Name: "GRUBlockCell", Doc: "Computes one time step of a layer of GRU cells: the gates r and u, the candidate c, and the new state h.",
		In: gruIn, Out: []string{"r: T", "u: T", "c: T", "h: T"}, Attrs: []string{"T: {float}"}, Shape: gruShape,
	}, gruCell)
	kernel.RegisterFunc(opdef.Def{
		Name: "GRUBlockCellGrad", Doc: "Computes the gradients of GRUBlockCell with respect to the input, the previous state, and the pre-activation gates.",
		In:    append(append([]string{}, gruIn...), "r: T", "u: T", "c: T", "d_h: T"),
		Out:   []string{"d_x: T", "d_h_prev: T", "d_c_bar: T", "d_r_bar_u_bar: T"},
		Attrs: []string{"T: {float}"}, Shape: gruGradShape,
	}, gruCellGrad)
}

func gruShape(c *opdef.ShapeContext) error {
	batch, cells, err := cellShape(c)
	if err == nil {
		c.SetAll(shapefn.Of(batch, cells))
	}
	return err
}

func gruGradShape(c *opdef.ShapeContext) error {
	batch, cells, err := cellShape(c)
	if err != nil {
		return err
	}
	w, err := opdef.WithRank(c.In[2], 2)
	if err != nil {
		return err
	}
	c.SetAll(shapefn.Of(batch, cells))
	c.Out[0], _ = opdef.WithRank(c.In[0], 2)
	c.Out[3] = shapefn.Of(batch, w.Dim(1))
	return nil
}

// gru is a layer of GRU cells with its weights: those of both gates and those of the candidate.
type gru struct {
	batch, input, cells int
	wRU, wC, bRU, bC    []float32
}

// newGRU checks the inputs and returns the layer. more describes the inputs after the first six in
// errors.
func newGRU(ctx *kernel.Context, more ...[2]string) (*gru, error) {
	rank := func(input, rank int, name string, dims ...expectedDim) expected {
		return expected{input: input, rank: rank, text: "Rank of " + name + " must be " + string(rune('0'+rank)) + ", got #", dims: dims}
	}
	first := []expected{rank(0, 2, "x"), rank(1, 2, "h_prev")}
	if err := checkAll(ctx, first); err != nil {
		return nil, err
	}
	x, h := ctx.Input(0), ctx.Input(1)
	g := &gru{batch: x.Dim(0), input: x.Dim(1), cells: h.Dim(1)}
	n, rows := g.cells, g.input+g.cells
	all := []expected{
		rank(1, 2, "h_prev", expectedDim{0, "h_prev.dims(0)", "batch_size", g.batch}),
		rank(2, 2, "w_ru_", expectedDim{0, "w_ru.dim_size(0)", "input_size + cell_size", rows}, expectedDim{1, "w_ru.dim_size(1)", "cell_size * 2", 2 * n}),
		rank(3, 2, "w_c", expectedDim{0, "w_c.dim_size(0)", "input_size + cell_size", rows}, expectedDim{1, "w_c.dim_size(1)", "cell_size", n}),
		rank(4, 1, "b_ru", expectedDim{0, "b_ru.dim_size(0)", "cell_size * 2", 2 * n}),
		rank(5, 1, "b_c", expectedDim{0, "b_c.dim_size(0)", "cell_size", n}),
	}
	for i, names := range more {
		//sizedmake:ok one for each input
		all = append(all, rank(6+i, 2, names[0], expectedDim{0, names[1] + ".dims(0)", "batch_size", g.batch},
			expectedDim{1, names[1] + ".dims(1)", "cell_size", n}))
	}
	if err := checkAll(ctx, all); err != nil {
		return nil, err
	}
	e := elements{ctx: ctx}
	g.wRU, g.wC, g.bRU, g.bC = e.in(2), e.in(3), e.in(4), e.in(5)
	return g, nil
}

// sums computes x and h times their weights, plus the bias.
func (g *gru) sums(out, x, h, w, bias []float32) {
	n := len(bias)
	c := gemm.Dense(out, g.batch, n)
	gemm.Mul(c, gemm.Dense(x, g.batch, g.input), gemm.Dense(w, g.input, n), gemm.Options[float32]{Bias: bias})
	gemm.Mul(c, gemm.Dense(h, g.batch, g.cells), gemm.Dense(w[g.input*n:], g.cells, n), gemm.Options[float32]{Beta: 1})
}

// rows calls f with the bounds of every row of cells.
func (g *gru) rows(f func(r, lo, hi int)) {
	n := g.cells
	parallel.For(g.batch, max(1, 2000/max(1, n)), func(lo, hi int) {
		for r := lo; r < hi; r++ {
			f(r, r*n, (r+1)*n)
		}
	})
}

func gruCell(ctx *kernel.Context) error {
	g, err := newGRU(ctx)
	if err != nil {
		return err
	}
	if d := device.Of(ctx.Input(0)); d != nil {
		return g.cellOnDevice(ctx, d)
	}
	e := elements{ctx: ctx}
	var out [4][]float32
	for i := range out {
		if out[i], err = e.out(i, matrixShape(g.batch, g.cells)); err != nil {
			return err
		}
	}
	r, u, c, h := out[0], out[1], out[2], out[3]
	x, hPrev, n := e.in(0), e.in(1), g.cells
	both, reset := membudget.Make[float32](g.batch*2*n), membudget.Make[float32](g.batch*n)
	g.sums(both, x, hPrev, g.wRU, g.bRU)
	g.rows(func(row, lo, hi int) {
		simd.Sigmoid(r[lo:hi], both[row*2*n:][:n])
		simd.Sigmoid(u[lo:hi], both[row*2*n+n:][:n])
		simd.Mul(reset[lo:hi], hPrev[lo:hi], r[lo:hi])
	})
	g.sums(c, x, reset, g.wC, g.bC)
	g.rows(func(_, lo, hi int) {
		simd.Tanh(c[lo:hi], c[lo:hi])
		for k := lo; k < hi; k++ {
			h[k] = u[k]*(hPrev[k]-c[k]) + c[k]
		}
	})
	return nil
}

func gruCellGrad(ctx *kernel.Context) error {
	g, err := newGRU(ctx, [2]string{"r", "r"}, [2]string{"u", "u"}, [2]string{"w_c", "c"}, [2]string{"d_h", "d_h"})
	if err != nil {
		return err
	}
	if d := device.Of(ctx.Input(0)); d != nil {
		return g.gradOnDevice(ctx, d)
	}
	e, n := elements{ctx: ctx}, g.cells
	var out [4][]float32
	for i, cols := range []int{g.input, n, n, 2 * n} {
		if out[i], err = e.out(i, matrixShape(g.batch, cols)); err != nil {
			return err
		}
	}
	dx, dhPrev, dc, dru := out[0], out[1], out[2], out[3]
	hPrev, r, u, c, dh := e.in(1), e.in(6), e.in(7), e.in(8), e.in(9)
	dReset := membudget.Make[float32](g.batch * n) // gradient of r*h
	g.rows(func(row, lo, hi int) {
		du := dru[row*2*n+n:]
		for k := lo; k < hi; k++ {
			dc[k] = dh[k] * (1 - u[k]) * (1 - c[k]*c[k])
			du[k-lo] = dh[k] * (hPrev[k] - c[k]) * u[k] * (1 - u[k])
		}
	})
	g.back(dReset, dc, g.wC[g.input*n:], n, 0)
	g.rows(func(row, lo, hi int) {
		dr := dru[row*2*n:]
		for k := lo; k < hi; k++ {
			dr[k-lo] = dReset[k] * hPrev[k] * r[k] * (1 - r[k])
			dhPrev[k] = dReset[k]*r[k] + dh[k]*u[k]
		}
	})
	g.back(dhPrev, dru, g.wRU[g.input*2*n:], 2*n, 1)
	g.back(dx, dru, g.wRU[:g.input*2*n], 2*n, 0)
	g.back(dx, dc, g.wC[:g.input*n], n, 1)
	return nil
}

// back sets out to beta*out plus gradients of width n times the transposed weights.
func (g *gru) back(out, d, w []float32, n int, beta float32) {
	cols := len(w) / max(1, n)
	gemm.Mul(gemm.Dense(out, g.batch, cols), gemm.Dense(d, g.batch, n), gemm.Dense(w, cols, n).T(), gemm.Options[float32]{Beta: beta})
}
