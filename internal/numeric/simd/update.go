package simd

import (
	"math"

	"github.com/weft-ml/weft/internal/sys/bulk"
)

// Optimizer steps. w holds the weights and g the gradient. The other slices are the state. w and
// the state are updated in place. The formulas are those of TensorFlow's Apply ops.

// SGD computes w -= rate*g.
func SGD[T Float](w, g []T, rate T) { Axpy(w, -rate, g) }

type updateKernels[T Float] struct {
	momentum, momentumNesterov levels[func(w, acc, g *T, n int, p *[2]T)]
	adagrad, adagradRoot       levels[func(w, acc, g *T, n int, p *[3]T)]
	ftrl                       levels[func(w, acc, linear, g *T, n int, p *[5]T)]
	adam, adamNesterov         levels[func(w, m, v, g *T, n int, p *[4]T)]
	rmsProp                    levels[func(w, ms, mom, g *T, n int, p *[4]T)]
	rmsPropCentered            levels[func(w, ms, mom, mg, g *T, n int, p *[4]T)]
}

var update pair[updateKernels[float32], updateKernels[float64]]

func updateOf[T Float]() *updateKernels[T] {
	if isFloat32[T]() {
		return cast[updateKernels[T]](&update.f32)
	}
	return cast[updateKernels[T]](&update.f64)
}

// Momentum computes acc = momentum*acc + g, and then w -= rate*acc or, with Nesterov's form, w -=
// rate*(g + momentum*acc).
func Momentum[T Float](w, acc, g []T, rate, momentum T, nesterov bool) {
	acc, g = acc[:len(w)], g[:len(w)]
	l := Current()
	if l == Generic {
		momentumGo(w, acc, g, rate, momentum, nesterov)
		return
	}
	k := updateOf[T]()
	f := k.momentum[l-1]
	if nesterov {
		f = k.momentumNesterov[l-1]
	}
	p := [2]T{rate, momentum}
	for i := 0; i < len(w); i += piece {
		bulk.SafePoint()
		f(&w[i], &acc[i], &g[i], min(piece, len(w)-i), &p)
	}
}

// Adagrad computes acc += g² unless frozen, and then w -= rate*g/(√acc + epsilon).
func Adagrad[T Float](w, acc, g []T, rate, epsilon T, frozen bool) {
	acc, g = acc[:len(w)], g[:len(w)]
	l := Current()
	if l == Generic {
		adagradGo(w, acc, g, rate, epsilon, frozen)
		return
	}
	// p[2] is a mask instead of a factor: an infinite g times 0 must not turn acc into NaN
	p := [3]T{rate, epsilon}
	if every := ^uint64(0); !frozen {
		p[2] = *cast[T](&every)
	}
	f := updateOf[T]().adagrad[l-1]
	if epsilon == 0 {
		f = updateOf[T]().adagradRoot[l-1]
	}
	for i := 0; i < len(w); i += piece {
		bulk.SafePoint()
		f(&w[i], &acc[i], &g[i], min(piece, len(w)-i), &p)
	}
}

// AdamRates holds the factors of a step of Adam. Rate is the learning rate corrected for the number
// of steps: rate * √(1 - beta2^t) / (1 - beta1^t).
type AdamRates[T Float] struct {
	Rate, Beta1, Beta2, Epsilon T
	Nesterov                    bool
}

// Adam computes m += (g-m)*(1-beta1), v += (g²-v)*(1-beta2), and then w -= rate*m/(√v + epsilon).
// Nesterov's form replaces m by beta1*m + (1-beta1)*g in the last step.
func Adam[T Float](w, m, v, g []T, r AdamRates[T]) {
	m, v, g = m[:len(w)], v[:len(w)], g[:len(w)]
	p := [4]T{r.Rate, 1 - r.Beta1, 1 - r.Beta2, r.Epsilon}
	l := Current()
	if l == Generic {
		adamGo(w, m, v, g, &p, r.Nesterov)
		return
	}
	k := updateOf[T]()
	f := k.adam[l-1]
	if r.Nesterov {
		f = k.adamNesterov[l-1]
	}
	for i := 0; i < len(w); i += piece {
		bulk.SafePoint()
		f(&w[i], &m[i], &v[i], &g[i], min(piece, len(w)-i), &p)
	}
}

// RMSPropRates holds the factors of a step of RMSProp.
type RMSPropRates[T Float] struct{ Rate, Rho, Momentum, Epsilon T }

// RMSProp computes ms += (g²-ms)*(1-rho), mom = momentum*mom + rate*g/√(ms + epsilon), and then w
// -= mom. The centered form, if mg is not nil, also computes mg += (g-mg)*(1-rho) and replaces ms
// by ms - mg² under the root.
func RMSProp[T Float](w, ms, mom, mg, g []T, r RMSPropRates[T]) {
	ms, mom, g = ms[:len(w)], mom[:len(w)], g[:len(w)]
	p := [4]T{r.Rate, 1 - r.Rho, r.Momentum, r.Epsilon}
	l := Current()
	switch {
	case l == Generic:
		rmsPropGo(w, ms, mom, mg, g, &p)
	case mg == nil:
		f := updateOf[T]().rmsProp[l-1]
		for i := 0; i < len(w); i += piece {
			bulk.SafePoint()
			f(&w[i], &ms[i], &mom[i], &g[i], min(piece, len(w)-i), &p)
		}
	default:
		mg = mg[:len(w)]
		f := updateOf[T]().rmsPropCentered[l-1]
		for i := 0; i < len(w); i += piece {
			bulk.SafePoint()
			f(&w[i], &ms[i], &mom[i], &mg[i], &g[i], min(piece, len(w)-i), &p)
		}
	}
}

// FTRLRates holds the factors of a step of FTRL. Scale multiplies the gradient and the penalties,
// and Divisor divides the roots. Either of them contains the learning rate.
type FTRLRates[T Float] struct{ Scale, Divisor, L1, L2, Shrinkage T }

// FTRL computes next = acc + g², linear += scale*(g + 2*shrinkage*w) - (√next - √acc)/divisor*w,
// and acc = next. Then w = (sign(linear)*l1*scale - linear)/(√next/divisor + 2*l2*scale) where
// |linear| > l1*scale and linear is not 0, and w = 0 elsewhere.
func FTRL[T Float](w, acc, linear, g []T, r FTRLRates[T]) {
	acc, linear, g = acc[:len(w)], linear[:len(w)], g[:len(w)]
	p := [5]T{r.Scale, 1 / r.Divisor, r.L1 * r.Scale, 2 * r.L2 * r.Scale, 2 * r.Shrinkage}
	l := Current()
	if l == Generic {
		ftrlGo(w, acc, linear, g, &p)
		return
	}
	f := updateOf[T]().ftrl[l-1]
	for i := 0; i < len(w); i += piece {
		bulk.SafePoint()
		f(&w[i], &acc[i], &linear[i], &g[i], min(piece, len(w)-i), &p)
	}
}

func ftrlGo[T Float](w, acc, linear, g []T, p *[5]T) {
	for i, x := range g {
		next := acc[i] + x*x
		root := T(math.Sqrt(float64(next)))
		linear[i] += (x+p[4]*w[i])*p[0] - (root-T(math.Sqrt(float64(acc[i]))))*p[1]*w[i]
		w[i], acc[i] = 0, next
		if y := linear[i]; max(y, -y) > p[2] && y != 0 {
			w[i] = (p[2]*T(math.Copysign(1, float64(y))) - y) / (root*p[1] + p[3])
		}
	}
}

func momentumGo[T Float](w, acc, g []T, rate, momentum T, nesterov bool) {
	for i, x := range g {
		acc[i] = momentum*acc[i] + x
		if nesterov {
			w[i] -= rate * (x + momentum*acc[i])
		} else {
			w[i] -= rate * acc[i]
		}
	}
}

func adagradGo[T Float](w, acc, g []T, rate, epsilon T, frozen bool) {
	for i, x := range g {
		if !frozen {
			acc[i] += x * x
		}
		w[i] -= rate * x / (T(math.Sqrt(float64(acc[i]))) + epsilon)
	}
}

func adamGo[T Float](w, m, v, g []T, p *[4]T, nesterov bool) {
	for i, x := range g {
		m[i] += (x - m[i]) * p[1]
		v[i] += (x*x - v[i]) * p[2]
		step := m[i]
		if nesterov {
			step += (x - m[i]) * p[1]
		}
		w[i] -= p[0] * step / (T(math.Sqrt(float64(v[i]))) + p[3])
	}
}

func rmsPropGo[T Float](w, ms, mom, mg, g []T, p *[4]T) {
	for i, x := range g {
		ms[i] += (x*x - ms[i]) * p[1]
		d := ms[i] + p[3]
		if mg != nil {
			mg[i] += (x - mg[i]) * p[1]
			d -= mg[i] * mg[i]
		}
		mom[i] = p[2]*mom[i] + p[0]*x/T(math.Sqrt(float64(d)))
		w[i] -= mom[i]
	}
}
