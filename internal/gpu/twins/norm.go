package twins

import (
	"math"

	"github.com/weft-ml/weft/internal/gpu/hostgpu"
)

func init() {
	register("normstep", func(a *hostgpu.Args) {
		z, x, y, f := hostgpu.Slice[float32](a, 0), hostgpu.Slice[float32](a, 1), hostgpu.Slice[float32](a, 2), a.Float32(4)
		for i := range a.Int(3) {
			switch a.Int(5) {
			case 0:
				z[i] = x[i] * f
			case 1:
				z[i] = x[i]*(1-f) + y[i]*f
			default:
				z[i] = x[i] / float32(math.Sqrt(float64(y[i]+f)))
			}
		}
	})
}

// normalizations registers the kernels of norm.cl for a type.
func normalizations[S number](e elem[S, float64]) {
	if e.name == "f64" {
		return
	}
	for name, term := range map[string]func(v, d, m, r float64) float64{
		"colsum":     func(v, _, _, _ float64) float64 { return v },
		"colsquares": func(v, _, m, _ float64) float64 { return (v - m) * (v - m) },
		"coldot":     func(v, d, m, r float64) float64 { return d * (v - m) * r },
	} {
		register(name+"_"+e.name, func(a *hostgpu.Args) {
			y, x, g := hostgpu.Slice[float32](a, 0), hostgpu.Slice[S](a, 1), hostgpu.Slice[S](a, 2)
			mean, scale := hostgpu.Slice[float32](a, 3), hostgpu.Slice[float32](a, 4)
			rows, channels, splits := a.Int(5), a.Int(6), a.Int(7)
			chunk := (rows + splits - 1) / splits
			for at := range splits * channels {
				c, lo, s := at%channels, at/channels*chunk, 0.0
				for k := lo; k < min(lo+chunk, rows); k++ {
					s += term(e.load(x[k*channels+c]), e.load(g[k*channels+c]), float64(mean[c]), float64(scale[c]))
				}
				if a.Int(8) > 0 {
					s /= float64(a.Int(8))
				}
				y[at] = float32(s)
			}
		})
	}
	column := func(a *hostgpu.Args, i int) func(c int64) float64 {
		v := hostgpu.Slice[float32](a, i)
		return func(c int64) float64 { return float64(v[c]) }
	}
	register("normalize_"+e.name, func(a *hostgpu.Args) {
		y, x := hostgpu.Slice[S](a, 0), hostgpu.Slice[S](a, 1)
		mean, variance, scale, offset := column(a, 2), column(a, 3), column(a, 4), column(a, 5)
		for i := range a.Int(6) {
			c := i % a.Int(7)
			v := (e.load(x[i])-mean(c))/math.Sqrt(variance(c)+float64(a.Float32(8)))*scale(c) + offset(c)
			if a.Int(9) != 0 {
				v = max(v, 0)
			}
			y[i] = e.store(v)
		}
	})
	register("normgrad_"+e.name, func(a *hostgpu.Args) {
		y, g, x := hostgpu.Slice[S](a, 0), hostgpu.Slice[S](a, 1), hostgpu.Slice[S](a, 2)
		mean, variance, scale, sum, dot := column(a, 3), column(a, 4), column(a, 5), column(a, 6), column(a, 7)
		rows := float64(a.Int(10))
		for i := range a.Int(8) {
			c := i % a.Int(9)
			r, d := 1/math.Sqrt(variance(c)+float64(a.Float32(11))), e.load(g[i])
			if a.Int(12) == 0 {
				d -= sum(c)/rows + (e.load(x[i])-mean(c))*r*r*dot(c)/rows
			}
			y[i] = e.store(d * scale(c) * r)
		}
	})
	responses(e)
}

// responses registers local response normalization for a type.
func responses[S number](e elem[S, float64]) {
	// norm returns the divisor's base for channel c of the row that begins at element row.
	norm := func(x []S, row, c, channels, radius int64, bias, alpha float64) float64 {
		s := 0.0
		for k := max(0, c-radius); k <= min(channels-1, c+radius); k++ {
			v := e.load(x[row+k])
			s += v * v
		}
		return bias + alpha*s
	}
	register("lrn_"+e.name, func(a *hostgpu.Args) {
		y, x, channels := hostgpu.Slice[S](a, 0), hostgpu.Slice[S](a, 1), a.Int(3)
		for i := range a.Int(2) {
			n := norm(x, i-i%channels, i%channels, channels, a.Int(4), float64(a.Float32(5)), float64(a.Float32(6)))
			y[i] = e.store(e.load(x[i]) * math.Pow(n, -float64(a.Float32(7))))
		}
	})
	register("lrn_"+e.name+"_norms", func(a *hostgpu.Args) {
		z, x, channels := hostgpu.Slice[float32](a, 0), hostgpu.Slice[S](a, 1), a.Int(3)
		for i := range a.Int(2) {
			z[i] = float32(norm(x, i-i%channels, i%channels, channels, a.Int(4), float64(a.Float32(5)), float64(a.Float32(6))))
		}
	})
	register("lrn_"+e.name+"_grad", func(a *hostgpu.Args) {
		z, g, x, y := hostgpu.Slice[S](a, 0), hostgpu.Slice[S](a, 1), hostgpu.Slice[S](a, 2), hostgpu.Slice[S](a, 3)
		norms, channels, radius := hostgpu.Slice[float32](a, 4), a.Int(6), a.Int(7)
		alpha, beta := float64(a.Float32(9)), float64(a.Float32(10))
		for i := range a.Int(5) {
			row, c, d := i-i%channels, i%channels, 0.0
			for j := max(0, c-radius); j <= min(channels-1, c+radius); j++ {
				n, gj := float64(norms[row+j]), e.load(g[row+j])
				d -= 2 * alpha * beta * e.load(x[i]) * e.load(y[row+j]) / n * gj
				if j == c {
					d += math.Pow(n, -beta) * gj
				}
			}
			z[i] = e.store(d)
		}
	})
}
