package twins

import (
	"math"

	"github.com/weft-ml/weft/internal/gpu/hostgpu"
)

// products registers the matrix products for a type.
func products[S number](e elem[S, float64]) {
	run := func(a *hostgpu.Args) {
		c, x, y := a.Bytes(0), hostgpu.Slice[S](a, 1), hostgpu.Slice[S](a, 2)
		m, n, k := a.Int(3), a.Int(4), a.Int(5)
		ai, ap, bp, bj, za, zb, splits := a.Int(6), a.Int(7), a.Int(8), a.Int(9), a.Int(10), a.Int(11), a.Int(12)
		chunk := (k + splits - 1) / splits
		for z := range int64(a.Grid[2]) {
			batch, lo := z/splits, z%splits*chunk
			for i := range m {
				for j := range n {
					var s float64
					for p := lo; p < min(lo+chunk, k); p++ {
						s += e.load(x[batch*za+i*ai+p*ap]) * e.load(y[batch*zb+p*bp+j*bj])
					}
					if at := int((z*m+i)*n + j); splits > 1 {
						storePartial(e, c, at, s)
					} else {
						storeAt(c, at, e.store(s))
					}
				}
			}
		}
	}
	register("matmul128_"+e.name, run)
	register("matmul32_"+e.name, run)
}

func bias[S, C number](e elem[S, C]) {
	register("bias_"+e.name, func(a *hostgpu.Args) {
		y, x, w, channels, inner := hostgpu.Slice[S](a, 0), hostgpu.Slice[S](a, 1), hostgpu.Slice[S](a, 2), a.Int(4), a.Int(5)
		for i := range a.Int(3) {
			y[i] = e.store(e.load(x[i]) + e.load(w[i/inner%channels]))
		}
	})
}

// networks registers softmax and the cross entropies for a type.
func networks[S number](e elem[S, float64]) {
	register("softmax_"+e.name, func(a *hostgpu.Args) {
		y, x, cols := hostgpu.Slice[S](a, 0), hostgpu.Slice[S](a, 1), a.Int(3)
		for row := range a.Int(2) {
			p, logs := softmax(e, func(k int64) S { return x[row*cols+k] }, cols)
			if a.Int(4) != 0 {
				p = logs
			}
			for k, v := range p {
				y[row*cols+int64(k)] = e.store(v)
			}
		}
	})
	register("xent_"+e.name, func(a *hostgpu.Args) {
		loss, grad, x, y := hostgpu.Slice[S](a, 0), hostgpu.Slice[S](a, 1), hostgpu.Slice[S](a, 2), hostgpu.Slice[S](a, 3)
		cols := a.Int(5)
		for row := range a.Int(4) {
			p, logs := softmax(e, func(k int64) S { return x[row*a.Int(6)+k*a.Int(7)] }, cols)
			var l float64
			for k := range cols {
				w := e.load(y[row*a.Int(8)+k*a.Int(9)])
				l -= w * logs[k]
				grad[row*cols+k] = e.store(p[k] - w)
			}
			loss[row] = e.store(l)
		}
	})
	for _, index := range []string{"i32", "i64"} {
		register("sparsexent_"+e.name+"_"+index, func(a *hostgpu.Args) {
			loss, grad, x, labels := hostgpu.Slice[S](a, 0), hostgpu.Slice[S](a, 1), hostgpu.Slice[S](a, 2), indices(a, 3, index)
			cols := a.Int(5)
			for row := range a.Int(4) {
				p, logs := softmax(e, func(k int64) S { return x[row*cols+k] }, cols)
				label := labels(row)
				loss[row] = e.store(math.NaN())
				if label >= 0 && label < cols {
					loss[row] = e.store(-logs[label])
					p[label]--
				}
				for k, v := range p {
					if label < 0 || label >= cols {
						v = math.NaN()
					}
					grad[row*cols+int64(k)] = e.store(v)
				}
			}
		})
	}
}

// softmax returns the softmax of n elements, and its logarithm.
func softmax[S number](e elem[S, float64], x func(int64) S, n int64) (p, logs []float64) {
	p, logs = make([]float64, n), make([]float64, n)
	top, sum := math.Inf(-1), 0.0
	for k := range n {
		top = max(top, e.load(x(k)))
	}
	for k := range n {
		logs[k] = e.load(x(k)) - top
		p[k] = math.Exp(logs[k])
		sum += p[k]
	}
	for k := range n {
		p[k] /= sum
		logs[k] -= math.Log(sum)
	}
	return p, logs
}
