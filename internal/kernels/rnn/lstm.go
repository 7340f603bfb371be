package rnn

import (
	"github.com/weft-ml/weft/internal/numeric/gemm"
	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/numeric/simd"
)

// layout is the order of the four gates in weights and biases: the positions of the new cell values
// and of the forget gate. The input gate is always first and the output gate last.
type layout struct{ cell, forget int }

var (
	icfo = layout{cell: 1, forget: 2}
	ifco = layout{cell: 2, forget: 1}
)

// lstm is a layer of LSTM cells with its weights.
type lstm struct {
	layout
	batch, input, cells int
	peephole            bool
	forgetBias, clip    float32
	// a row for every input, then for every cell, of four gates each
	w, b          []float32
	wci, wcf, wco []float32 // peephole weights
}

// gates holds the results of steps: the gates, the cell states before and after tanh, and the
// outputs.
type gates struct{ i, cs, f, o, ci, co, h []float32 }

// step returns the gates of step t. n is the number of elements of a step.
func (g *gates) step(t, n int) gates {
	at := func(v []float32) []float32 { return v[t*n : (t+1)*n] }
	return gates{at(g.i), at(g.cs), at(g.f), at(g.o), at(g.ci), at(g.co), at(g.h)}
}

// weights returns the weights of the cells or of the inputs.
func (l *lstm) weights(ofCells bool) gemm.Matrix[float32] {
	if ofCells {
		return gemm.Dense(l.w[l.input*4*l.cells:], l.cells, 4*l.cells)
	}
	return gemm.Dense(l.w, l.input, 4*l.cells)
}

// fromInputs sets sums, for one or more steps, to the contributions of the inputs and biases to the
// gates.
func (l *lstm) fromInputs(sums, x []float32) {
	rows := len(sums) / max(1, 4*l.cells)
	gemm.Mul(gemm.Dense(sums, rows, 4*l.cells), gemm.Dense(x, rows, l.input), l.weights(false), gemm.Options[float32]{Bias: l.b})
}

// forward computes a step from the results of the previous step and the contributions of the
// inputs.
func (l *lstm) forward(sums, csPrev, hPrev []float32, out gates) {
	n := l.cells
	gemm.Mul(gemm.Dense(sums, l.batch, 4*n), gemm.Dense(hPrev, l.batch, n), l.weights(true), gemm.Options[float32]{Beta: 1})
	parallel.For(l.batch, max(1, 1000/max(1, n)), func(lo, hi int) {
		for r := lo; r < hi; r++ {
			l.forwardRow(sums[r*4*n:(r+1)*4*n], csPrev[r*n:(r+1)*n], out.step(r, n))
		}
	})
}

func (l *lstm) forwardRow(sums, csPrev []float32, out gates) {
	n := l.cells
	l.gate(out.i, sums[:n], csPrev, l.wci, 0)
	simd.Tanh(out.ci, sums[l.cell*n:][:n])
	l.gate(out.f, sums[l.forget*n:][:n], csPrev, l.wcf, l.forgetBias)
	for k, v := range csPrev {
		out.cs[k] = out.i[k]*out.ci[k] + out.f[k]*v
	}
	if l.clip > 0 {
		simd.Clamp(out.cs, out.cs, -l.clip, l.clip)
	}
	simd.Tanh(out.co, out.cs)
	l.gate(out.o, sums[3*n:], out.cs, l.wco, 0)
	simd.Mul(out.h, out.o, out.co)
}

// gate sets dst to the values of a gate, which sees the cell states cs through its peephole.
func (l *lstm) gate(dst, sums, cs, peep []float32, bias float32) {
	simd.AddScalar(dst, sums, bias)
	if l.peephole {
		for k, v := range cs {
			dst[k] += v * peep[k]
		}
	}
	simd.Sigmoid(dst, dst)
}

// peepGrads accumulates the gradients of the peephole weights.
type peepGrads struct{ wci, wcf, wco []float32 }

// backward computes the gradients of the pre-activation gates and of the previous cell states, from
// the gradients of the cell states and outputs of a step. It adds to the peephole gradients.
func (l *lstm) backward(at gates, csPrev, csGrad, hGrad, dGates, csPrevGrad []float32, peep peepGrads) {
	n := l.cells
	parallel.For(l.batch, max(1, 1000/max(1, n)), func(lo, hi int) {
		for r := lo; r < hi; r++ {
			row := func(v []float32) []float32 { return v[r*n : (r+1)*n] }
			l.backwardRow(at.step(r, n), row(csPrev), row(csGrad), row(hGrad), dGates[r*4*n:(r+1)*4*n], row(csPrevGrad))
		}
	})
	if !l.peephole {
		return
	}
	for r := range l.batch {
		di, df, do := l.split(dGates[r*4*n : (r+1)*4*n])
		for k, v := range csPrev[r*n : (r+1)*n] {
			peep.wci[k] += di[k] * v
			peep.wcf[k] += df[k] * v
			peep.wco[k] += do[k] * at.cs[r*n+k]
		}
	}
}

// split returns the parts of a row that belong to the gates with peepholes.
func (l *lstm) split(row []float32) (i, f, o []float32) {
	n := l.cells
	return row[:n], row[l.forget*n:][:n], row[3*n:]
}

func (l *lstm) backwardRow(at gates, csPrev, csGrad, hGrad, dGates, csPrevGrad []float32) {
	dci := dGates[l.cell*l.cells:][:l.cells]
	di, df, do := l.split(dGates)
	for k, prev := range csPrev {
		i, f, o, ci, co := at.i[k], at.f[k], at.o[k], at.ci[k], at.co[k]
		do[k] = o * (1 - o) * hGrad[k] * co
		dcs := (1-co*co)*hGrad[k]*o + csGrad[k]
		if l.peephole {
			dcs += do[k] * l.wco[k]
		}
		dci[k] = (1 - ci*ci) * dcs * i
		df[k] = f * (1 - f) * dcs * prev
		di[k] = i * (1 - i) * dcs * ci
		csPrevGrad[k] = dcs * f
		if l.peephole {
			csPrevGrad[k] += di[k]*l.wci[k] + df[k]*l.wcf[k]
		}
	}
}
