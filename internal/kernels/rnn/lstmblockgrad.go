package rnn

import (
	"github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/internal/numeric/gemm"
	"github.com/weft-ml/weft/internal/numeric/simd"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
)

func (layout layout) newBlockGrad(c *kernel.Construction) (kernel.Kernel, error) {
	peephole := c.Attrs.Bool("use_peephole")
	return kernel.Func(func(ctx *kernel.Context) error {
		e := &elements{ctx: ctx}
		s := &sequence{lstm: lstm{layout: layout, peephole: peephole}}
		if err := s.gradInputs(ctx, e); err != nil {
			return err
		}
		if d := device.Of(ctx.Input(1)); d != nil {
			return s.gradientOnDevice(ctx, d)
		}
		var d blockGrads
		if err := d.allocate(e); err != nil {
			return err
		}
		at := gates{i: e.in(9), cs: e.in(10), f: e.in(11), o: e.in(12), ci: e.in(13), co: e.in(14), h: e.in(15)}
		if err := s.gradient(e, at, &d); err != nil {
			return err
		}
		e.finish()
		return nil
	}), nil
}

// gradInputs checks the inputs of BlockLSTMGrad and reads the weights.
func (s *sequence) gradInputs(ctx *kernel.Context, e *elements) error {
	rank := func(input int, rank int, name string) expected {
		return expected{input: input, rank: rank, text: name + " must be rank " + string(rune('0'+rank)) + " but is rank #"}
	}
	if err := checkAll(ctx, []expected{
		rank(1, 3, "x"), rank(2, 2, "cs_prev"), rank(3, 2, "h_prev"), rank(4, 2, "w"), rank(5, 1, "wci"), rank(6, 1, "wcf"), rank(7, 1, "wco"),
		rank(8, 1, "b"),
	}); err != nil {
		return err
	}
	if err := s.check(ctx); err != nil {
		return err
	}
	w, b := ctx.Input(4), ctx.Input(8)
	if s.cells = w.Dim(1) / 4; s.input+s.cells != w.Dim(0) {
		return status.InvalidArgumentf("w matrix rows don't match: %d vs. %d", s.input+s.cells, w.Dim(0))
	}
	if w.Dim(1) != 4*s.cells || b.Dim(0) != 4*s.cells {
		return status.InvalidArgumentf("w and b cell_size don't match: %d vs. %d", s.cells, b.Dim(0))
	}
	s.w, s.wci, s.wcf, s.wco, s.b = e.in(4), e.in(5), e.in(6), e.in(7), e.in(8)
	if err := s.checkPeepholes(ctx, 5); err != nil {
		return err
	}
	for i, name := range []string{"cs_prev", "h_prev", "i", "cs", "f", "o", "ci", "co", "h", "cs_grad", "h_grad"} {
		input, want := 7+i, s.steps*s.batch*s.cells
		if i < 2 {
			input, want = 2+i, s.batch*s.cells
		}
		if n := ctx.Input(input).NumElements(); n != want {
			return status.InvalidArgumentf("%s has %d elements, but there should be %d", name, n, want)
		}
	}
	return nil
}

// blockGrads holds the outputs of BlockLSTMGrad.
type blockGrads struct {
	x, csPrev, hPrev, w, b []float32
	peep                   peepGrads
}

func (d *blockGrads) allocate(e *elements) (err error) {
	for i, v := range []*[]float32{&d.x, &d.csPrev, &d.hPrev, &d.w, &d.peep.wci, &d.peep.wcf, &d.peep.wco, &d.b} {
		if *v, err = e.out(i, e.ctx.Input(1+i).Shape()); err != nil {
			return err
		}
	}
	return nil
}

// gradient runs backwards over the steps to compute the gradients of the gates. The gradients of
// inputs and weights are products of these. It fails when the step of the graph ends.
func (s *sequence) gradient(e *elements, at gates, d *blockGrads) error {
	if s.run*s.batch*s.cells == 0 {
		return nil // there is any number of steps without cells
	}
	x, csPrev, hPrev, csGrad, hGrad := e.in(1), e.in(2), e.in(3), e.in(16), e.in(17)
	n, width := s.batch*s.cells, s.batch*4*s.cells
	dGates := membudget.Make[float32](s.run * width)
	dcs, dh := membudget.Make[float32](n), membudget.Make[float32](n)
	for t := s.run - 1; t >= 0; t-- {
		if err := e.ctx.Context().Err(); err != nil {
			return err
		}
		before := csPrev
		if t > 0 {
			before = at.cs[(t-1)*n : t*n]
		}
		simd.Add(dcs, d.csPrev, csGrad[t*n:(t+1)*n])
		simd.Add(dh, d.hPrev, hGrad[t*n:(t+1)*n])
		step := dGates[t*width : (t+1)*width]
		s.backward(at.step(t, n), before, dcs, dh, step, d.csPrev, d.peep)
		gemm.Mul(gemm.Dense(d.hPrev, s.batch, s.cells), gemm.Dense(step, s.batch, 4*s.cells), s.weights(true).T(), gemm.Options[float32]{})
	}
	rows, four := s.run*s.batch, 4*s.cells
	all := gemm.Dense(dGates, rows, four)
	gemm.Mul(gemm.Dense(d.x, rows, s.input), all, s.weights(false).T(), gemm.Options[float32]{})
	gemm.Mul(gemm.Dense(d.w, s.input, four), gemm.Dense(x, rows, s.input).T(), all, gemm.Options[float32]{})
	dwh := gemm.Dense(d.w[s.input*four:], s.cells, four)
	gemm.Mul(dwh, gemm.Dense(hPrev, s.batch, s.cells).T(), gemm.Dense(dGates, s.batch, four), gemm.Options[float32]{})
	if rest := rows - s.batch; rest > 0 {
		gemm.Mul(dwh, gemm.Dense(at.h, rest, s.cells).T(), gemm.Dense(dGates[width:], rest, four), gemm.Options[float32]{Beta: 1})
	}
	for r := range rows {
		simd.Add(d.b, d.b, dGates[r*four:(r+1)*four])
	}
	return nil
}
