package twins

import (
	"math"

	"github.com/weft-ml/weft/internal/gpu/hostgpu"
)

func sigmoid(v float64) float64 { return 1 / (1 + math.Exp(-v)) }

// reader returns the elements of an argument as float64.
func reader[S number](e elem[S, float64], a *hostgpu.Args, i int) func(int64) float64 {
	v := hostgpu.Slice[S](a, i)
	return func(k int64) float64 { return e.load(v[k]) }
}

// writer returns a function that sets an element of an argument.
func writer[S number](e elem[S, float64], a *hostgpu.Args, i int) func(int64, float64) {
	v := hostgpu.Slice[S](a, i)
	return func(k int64, x float64) { v[k] = e.store(x) }
}

// cells registers the kernels of recurrent cells for a type.
func cells[S number](e elem[S, float64]) {
	in := func(a *hostgpu.Args, i int) func(int64) float64 { return reader(e, a, i) }
	out := func(a *hostgpu.Args, i int) func(int64, float64) { return writer(e, a, i) }
	register("lstm_"+e.name, func(a *hostgpu.Args) {
		x, r, before, b, wci, wcf, wco := in(a, 7), in(a, 8), in(a, 9), in(a, 10), in(a, 11), in(a, 12), in(a, 13)
		n, cells, cell, forget := a.Int(14), a.Int(15), a.Int(16), a.Int(17)
		bias, clip, peephole := float64(a.Float32(18)), float64(a.Float32(19)), a.Int(20) != 0
		var set [7]func(int64, float64)
		for i := range set {
			set[i] = out(a, i)
		}
		for k := range n {
			c := k % cells
			gate := func(g int64) float64 {
				at := k/cells*4*cells + g*cells + c
				return x(at) + r(at) + b(g*cells+c)
			}
			prev, i, f, o := before(k), gate(0), gate(forget)+bias, gate(3)
			if peephole {
				i, f = i+prev*wci(c), f+prev*wcf(c)
			}
			i, f = sigmoid(i), sigmoid(f)
			ci := math.Tanh(gate(cell))
			cs := i*ci + f*prev
			if clip > 0 {
				cs = min(max(cs, -clip), clip)
			}
			if peephole {
				o += cs * wco(c)
			}
			o = sigmoid(o)
			co := math.Tanh(cs)
			for j, v := range []float64{i, cs, f, o, ci, co, o * co} {
				set[j](k, v)
			}
		}
	})
	register("lstm_"+e.name+"_grad", func(a *hostgpu.Args) {
		d, back := out(a, 0), out(a, 1)
		i, f, o, ci, co, before := in(a, 2), in(a, 3), in(a, 4), in(a, 5), in(a, 6), in(a, 7)
		cs1, cs2, h1, h2, wci, wcf, wco := in(a, 8), in(a, 9), in(a, 10), in(a, 11), in(a, 12), in(a, 13), in(a, 14)
		n, cells, cell, forget, more, peephole := a.Int(15), a.Int(16), a.Int(17), a.Int(18), a.Int(19) != 0, a.Int(20) != 0
		for k := range n {
			c, at := k%cells, k/cells*4*cells+k%cells
			dcs, dh := cs1(k), h1(k)
			if more {
				dcs, dh = dcs+cs2(k), dh+h2(k)
			}
			dout := o(k) * (1 - o(k)) * dh * co(k)
			dcs += (1 - co(k)*co(k)) * dh * o(k)
			if peephole {
				dcs += dout * wco(c)
			}
			df, di := f(k)*(1-f(k))*dcs*before(k), i(k)*(1-i(k))*dcs*ci(k)
			previous := dcs * f(k)
			if peephole {
				previous += di*wci(c) + df*wcf(c)
			}
			d(at, di)
			d(at+cell*cells, (1-ci(k)*ci(k))*dcs*i(k))
			d(at+forget*cells, df)
			d(at+3*cells, dout)
			back(k, previous)
		}
	})
	register("lstm_"+e.name+"_peep", func(a *hostgpu.Args) {
		d, before, cs := in(a, 3), in(a, 4), in(a, 5)
		cells, rows, forget, more := a.Int(6), a.Int(7), a.Int(8), a.Int(9) != 0
		for j, g := range []int64{0, forget, 3} {
			state := before
			if g == 3 {
				state = cs
			}
			was, set := in(a, j), out(a, j)
			for c := range cells {
				sum := 0.0
				for row := range rows {
					sum += d((row*4+g)*cells+c) * state(row*cells+c)
				}
				if more {
					sum += was(c)
				}
				set(c, sum)
			}
		}
	})
	if e.name == "f32" {
		gruCells(e)
	}
}

func gruCells[S number](e elem[S, float64]) {
	in := func(a *hostgpu.Args, i int) func(int64) float64 { return reader(e, a, i) }
	out := func(a *hostgpu.Args, i int) func(int64, float64) { return writer(e, a, i) }
	register("gru_"+e.name, func(a *hostgpu.Args) {
		reset, update, kept, x, r, b, before, cells := out(a, 0), out(a, 1), out(a, 2), in(a, 3), in(a, 4), in(a, 5), in(a, 6), a.Int(8)
		for k := range a.Int(7) {
			c, at := k%cells, k/cells*2*cells+k%cells
			open := sigmoid(x(at) + r(at) + b(c))
			reset(k, open)
			kept(k, before(k)*open)
			update(k, sigmoid(x(at+cells)+r(at+cells)+b(cells+c)))
		}
	})
	register("gru_"+e.name+"_state", func(a *hostgpu.Args) {
		candidate, h, x, r, b, update, before, cells := out(a, 0), out(a, 1), in(a, 2), in(a, 3), in(a, 4), in(a, 5), in(a, 6), a.Int(8)
		for k := range a.Int(7) {
			v := math.Tanh(x(k) + r(k) + b(k%cells))
			candidate(k, v)
			h(k, update(k)*(before(k)-v)+v)
		}
	})
	register("gru_"+e.name+"_candidate", func(a *hostgpu.Args) {
		dc, d, update, candidate, before, dh, cells := out(a, 0), out(a, 1), in(a, 2), in(a, 3), in(a, 4), in(a, 5), a.Int(7)
		for k := range a.Int(6) {
			u, v := update(k), candidate(k)
			dc(k, dh(k)*(1-u)*(1-v*v))
			d(k/cells*2*cells+cells+k%cells, dh(k)*(before(k)-v)*u*(1-u))
		}
	})
	register("gru_"+e.name+"_reset", func(a *hostgpu.Args) {
		back, d, dkept, reset, update, before, dh, cells := out(a, 0), out(a, 1), in(a, 2), in(a, 3), in(a, 4), in(a, 5), in(a, 6), a.Int(8)
		for k := range a.Int(7) {
			g, open := dkept(k), reset(k)
			d(k/cells*2*cells+k%cells, g*before(k)*open*(1-open))
			back(k, g*open+dh(k)*update(k))
		}
	})
}
