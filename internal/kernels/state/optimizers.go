package state

import (
	"math"
	"math/cmplx"

	"github.com/weft-ml/weft/internal/numeric/simd"
	"github.com/weft-ml/weft/internal/opkit/typeset"
	"github.com/weft-ml/weft/opdef"
)

func init() {
	for _, r := range []*rule{
		{
			name: "GradientDescent", doc: "Updates var by gradient descent: var -= alpha*delta.",
			forms: dense, vars: []string{"var"}, args: []string{"alpha", "delta"},
			f32: plain(descend[float32]), f64: plain(descend[float64]), c128: plain(complexDescend), types: typeset.Floats,
		},
		{
			name: "Momentum", doc: "Updates var by the momentum scheme: accum = accum*momentum + grad; var -= " +
				"lr*accum. With use_nesterov it uses Nesterov momentum.",
			forms: dense | sparse, vars: []string{"var", "accum"}, args: []string{"lr", "grad", "momentum"},
			attrs: []string{"use_nesterov: bool = false"}, f32: momentum[float32], f64: momentum[float64], c128: complexMomentum, types: typeset.Floats,
		},
		{
			name: "KerasMomentum", doc: "Updates var by the momentum scheme with the learning rate in the accumulator: " +
				"accum = accum*momentum - lr*grad; var += accum.",
			forms: byHandle | byHandleSparse, vars: []string{"var", "accum"}, args: []string{"lr", "grad", "momentum"},
			attrs: []string{"use_nesterov: bool = false"}, f32: kerasMomentum[float32], f64: kerasMomentum[float64], c128: kerasMomentum[complex128], types: typeset.Floats,
		},
		{
			name: "Adagrad", doc: "Updates var by the Adagrad scheme: accum += grad²; var -= lr*grad/√accum.",
			forms: dense | sparse, vars: []string{"var", "accum"}, args: []string{"lr", "grad"},
			attrs: []string{"update_slots: bool = true"}, f32: adagrad[float32], f64: adagrad[float64], c128: complexAdagrad, types: typeset.Floats,
		},
		{
			name: "AdagradV2", doc: "Updates var by the Adagrad scheme with a stabilizing constant: var -= " +
				"lr*grad/(√accum + epsilon).",
			forms: dense | sparse, vars: []string{"var", "accum"}, args: []string{"lr", "epsilon", "grad"},
			attrs: []string{"update_slots: bool = true"}, f32: adagradV2[float32], f64: adagradV2[float64], c128: complexAdagradV2, types: typeset.Floats,
		},
		{
			name: "Adadelta", doc: "Updates var by the Adadelta scheme (Zeiler, 2012): scales the gradient by the " +
				"ratio of the running means of squared updates and squared gradients.",
			forms: dense | sparse, vars: []string{"var", "accum", "accum_update"}, args: []string{"lr", "rho", "epsilon", "grad"},
			f32: plain(adadelta[float32]), f64: plain(adadelta[float64]), c128: plain(adadelta[complex128]), types: typeset.Floats,
		},
		{
			name: "Adam", doc: "Updates var by the Adam scheme (Kingma and Ba, 2014): m and v are running " +
				"means of the gradient and of its square; var -= " +
				"lr*√(1-beta2_power)/(1-beta1_power) * m/(√v + epsilon).",
			forms: dense, vars: []string{"var", "m", "v"},
			args:  []string{"beta1_power", "beta2_power", "lr", "beta1", "beta2", "epsilon", "grad"},
			attrs: []string{"use_nesterov: bool = false"}, f32: adam[float32], f64: adam[float64], c128: complexAdam, types: typeset.Floats,
			errors: map[string]string{"lr": "lr is not a scalar : "},
		},
		{
			name: "AdamWithAmsgrad", doc: "Updates var by the Adam scheme with vhat, the largest v of all steps, in the divisor.",
			forms: byHandle, vars: []string{"var", "m", "v", "vhat"},
			args: []string{"beta1_power", "beta2_power", "lr", "beta1", "beta2", "epsilon", "grad"},
			f32:  plain(amsgrad[float32]), f64: plain(amsgrad[float64]), types: typeset.Floats,
			errors: map[string]string{"lr": "lr is not a scalar : "},
		},
		{
			name: "AdaMax", doc: "Updates var by the AdaMax scheme (Kingma and Ba, 2014): Adam with a decayed " +
				"maximum of the absolute gradient in the divisor.",
			forms: dense, vars: []string{"var", "m", "v"}, args: []string{"beta1_power", "lr", "beta1", "beta2", "epsilon", "grad"},
			f32: plain(adaMax[float32]), f64: plain(adaMax[float64]), types: typeset.Floats,
			errors: map[string]string{"lr": "lr is not a scalar : "},
		},
		{
			name: "RMSProp", doc: "Updates var by the RMSProp scheme: ms += (grad²-ms)*(1-rho); mom = " +
				"momentum*mom + lr*grad/√(ms + epsilon); var -= mom.",
			forms: dense | sparse, vars: []string{"var", "ms", "mom"}, args: []string{"lr", "rho", "momentum", "epsilon", "grad"},
			f32: plain(rmsProp[float32]), f64: plain(rmsProp[float64]), c128: plain(complexRMSProp), types: typeset.Floats,
			errors: map[string]string{"lr": "lr is not a scalar : "},
		},
		{
			name: "CenteredRMSProp", doc: "Updates var by the centered RMSProp scheme, which divides by an estimate of " +
				"the variance of the gradient, ms - mg², instead of ms.",
			forms: dense | sparse, vars: []string{"var", "mg", "ms", "mom"}, args: []string{"lr", "rho", "momentum", "epsilon", "grad"},
			f32: plain(centeredRMSProp[float32]), f64: plain(centeredRMSProp[float64]), c128: plain(complexCenteredRMSProp), types: typeset.Floats,
			errors: map[string]string{"lr": "lr is not a scalar : "},
		},
		{
			name: "AddSign", doc: "Updates var by the AddSign scheme: var -= lr*(alpha + sign_decay*s)*grad, " +
				"where s is sign(grad)*sign(m) and m is the running mean of the gradient.",
			forms: dense, vars: []string{"var", "m"}, args: []string{"lr", "alpha", "sign_decay", "beta", "grad"},
			f32: plain(addSign[float32]), f64: plain(addSign[float64]), types: typeset.Floats,
		},
		{
			name: "PowerSign", doc: "Updates var by the PowerSign scheme: var -= " +
				"lr*exp(logbase*sign_decay*s)*grad, where s is sign(grad)*sign(m) and m is the " +
				"running mean of the gradient.",
			forms: dense, vars: []string{"var", "m"}, args: []string{"lr", "logbase", "sign_decay", "beta", "grad"},
			f32: plain(powerSign[float32]), f64: plain(powerSign[float64]), types: typeset.Floats,
		},
	} {
		r.register()
	}
}

func descend[T simd.Float](v [][]T, g, p []T) { simd.SGD(v[0], g, p[0]) }

func momentum[T simd.Float](a opdef.Attrs) update[T] {
	nesterov := a.Bool("use_nesterov")
	return func(v [][]T, g, p []T) { simd.Momentum(v[0], v[1], g, p[0], p[1], nesterov) }
}

func kerasMomentum[T number](a opdef.Attrs) update[T] {
	nesterov := a.Bool("use_nesterov")
	return func(v [][]T, g, p []T) {
		w, accum, lr, momentum := v[0], v[1], p[0], p[1]
		for i, d := range g {
			accum[i] = accum[i]*momentum - d*lr
			if nesterov {
				w[i] += accum[i]*momentum - d*lr
			} else {
				w[i] += accum[i]
			}
		}
	}
}

func adagrad[T simd.Float](a opdef.Attrs) update[T] {
	frozen := !a.Bool("update_slots")
	return func(v [][]T, g, p []T) { simd.Adagrad(v[0], v[1], g, p[0], 0, frozen) }
}

func adagradV2[T simd.Float](a opdef.Attrs) update[T] {
	frozen := !a.Bool("update_slots")
	return func(v [][]T, g, p []T) { simd.Adagrad(v[0], v[1], g, p[0], p[1], frozen) }
}

func adadelta[T number](v [][]T, g, p []T) {
	w, accum, accumUpdate, lr, rho, epsilon := v[0], v[1], v[2], p[0], p[1], p[2]
	for i, d := range g {
		accum[i] = accum[i]*rho + d*d*(1-rho)
		u := root(accumUpdate[i]+epsilon) / root(accum[i]+epsilon) * d
		w[i] -= u * lr
		accumUpdate[i] = accumUpdate[i]*rho + u*u*(1-rho)
	}
}

// adamRate returns Adam's learning rate with bias correction.
func adamRate[T number](p []T) T {
	beta1Power, beta2Power, lr := p[0], p[1], p[2]
	return lr * root(1-beta2Power) / (1 - beta1Power)
}

func adam[T simd.Float](a opdef.Attrs) update[T] {
	nesterov := a.Bool("use_nesterov")
	return func(v [][]T, g, p []T) {
		simd.Adam(v[0], v[1], v[2], g, simd.AdamRates[T]{
			Rate: adamRate(p), Beta1: p[3], Beta2: p[4], Epsilon: p[5], Nesterov: nesterov,
		})
	}
}

func amsgrad[T simd.Float](s [][]T, g, p []T) {
	w, m, v, vhat := s[0], s[1], s[2], s[3]
	rate, beta1, beta2, epsilon := adamRate(p), p[3], p[4], p[5]
	for i, d := range g {
		m[i] += (d - m[i]) * (1 - beta1)
		v[i] += (d*d - v[i]) * (1 - beta2)
		if vhat[i] < v[i] { // not max, which would propagate NaN
			vhat[i] = v[i]
		}
		w[i] -= m[i] * rate / (sqrt(vhat[i]) + epsilon)
	}
}

func adaMax[T simd.Float](s [][]T, g, p []T) {
	w, m, v := s[0], s[1], s[2]
	beta1Power, lr, beta1, beta2, epsilon := p[0], p[1], p[2], p[3], p[4]
	rate := lr / (1 - beta1Power)
	for i, d := range g {
		m[i] += (d - m[i]) * (1 - beta1)
		v[i] *= beta2
		if size := max(d, -d); v[i] < size { // not max, which would propagate NaN
			v[i] = size
		}
		w[i] -= rate * (m[i] / (v[i] + epsilon))
	}
}

func rmsProp[T simd.Float](v [][]T, g, p []T) {
	simd.RMSProp(v[0], v[1], v[2], nil, g, simd.RMSPropRates[T]{Rate: p[0], Rho: p[1], Momentum: p[2], Epsilon: p[3]})
}

func centeredRMSProp[T simd.Float](v [][]T, g, p []T) {
	simd.RMSProp(v[0], v[2], v[3], v[1], g, simd.RMSPropRates[T]{Rate: p[0], Rho: p[1], Momentum: p[2], Epsilon: p[3]})
}

func addSign[T simd.Float](v [][]T, g, p []T) {
	w, m, lr, alpha, decay, beta := v[0], v[1], p[0], p[1], p[2], p[3]
	for i, d := range g {
		m[i] = m[i]*beta + d*(1-beta)
		w[i] -= lr * (alpha + decay*signOf(d)*signOf(m[i])) * d
	}
}

func powerSign[T simd.Float](v [][]T, g, p []T) {
	w, m, lr, logbase, decay, beta := v[0], v[1], p[0], p[1], p[2], p[3]
	for i, d := range g {
		m[i] = m[i]*beta + d*(1-beta)
		w[i] -= lr * T(math.Exp(float64(logbase*decay*signOf(d)*signOf(m[i])))) * d
	}
}

func signOf[T simd.Float](x T) T {
	switch {
	case x > 0:
		return 1
	case x < 0:
		return -1
	}
	return x // zero or NaN
}

func sqrt[T simd.Float](x T) T { return T(math.Sqrt(float64(x))) }

// root is the square root for all types of number.
func root[T number](x T) T {
	switch x := any(&x).(type) {
	case *float32:
		*x = sqrt(*x)
	case *float64:
		*x = sqrt(*x)
	case *complex128:
		*x = cmplx.Sqrt(*x)
	}
	return x
}
