package state

import "github.com/weft-ml/weft/opdef"

// Optimizer rules for complex variables, whose real versions are vectorized.

func complexDescend(v [][]complex128, g, p []complex128) {
	for i, d := range g {
		v[0][i] -= d * p[0]
	}
}

func complexMomentum(a opdef.Attrs) update[complex128] {
	nesterov := a.Bool("use_nesterov")
	return func(v [][]complex128, g, p []complex128) {
		w, accum, lr, momentum := v[0], v[1], p[0], p[1]
		for i, d := range g {
			accum[i] = accum[i]*momentum + d
			if nesterov {
				w[i] -= d*lr + accum[i]*momentum*lr
			} else {
				w[i] -= accum[i] * lr
			}
		}
	}
}

func complexAdagrad(a opdef.Attrs) update[complex128] {
	return adagradBy(a, func([]complex128) complex128 { return 0 })
}

func complexAdagradV2(a opdef.Attrs) update[complex128] {
	return adagradBy(a, func(p []complex128) complex128 { return p[1] })
}

func adagradBy(a opdef.Attrs, epsilon func(p []complex128) complex128) update[complex128] {
	frozen := !a.Bool("update_slots")
	return func(v [][]complex128, g, p []complex128) {
		w, accum, lr, epsilon := v[0], v[1], p[0], epsilon(p)
		for i, d := range g {
			if !frozen {
				accum[i] += d * d
			}
			w[i] -= d * lr / (root(accum[i]) + epsilon)
		}
	}
}

func complexAdam(a opdef.Attrs) update[complex128] {
	nesterov := a.Bool("use_nesterov")
	return func(s [][]complex128, g, p []complex128) {
		w, m, v := s[0], s[1], s[2]
		rate, beta1, beta2, epsilon := adamRate(p), p[3], p[4], p[5]
		for i, d := range g {
			m[i] += (d - m[i]) * (1 - beta1)
			v[i] += (d*d - v[i]) * (1 - beta2)
			mean := m[i]
			if nesterov {
				mean = mean*beta1 + d*(1-beta1)
			}
			w[i] -= mean * rate / (root(v[i]) + epsilon)
		}
	}
}

func complexRMSProp(v [][]complex128, g, p []complex128) {
	w, ms, mom := v[0], v[1], v[2]
	for i, d := range g {
		ms[i] += (d*d - ms[i]) * (1 - p[1])
		mom[i] = mom[i]*p[2] + d*p[0]/root(ms[i]+p[3])
		w[i] -= mom[i]
	}
}

func complexCenteredRMSProp(v [][]complex128, g, p []complex128) {
	w, mg, ms, mom := v[0], v[1], v[2], v[3]
	for i, d := range g {
		ms[i] += (d*d - ms[i]) * (1 - p[1])
		mg[i] += (d - mg[i]) * (1 - p[1])
		mom[i] = mom[i]*p[2] + d*p[0]/root(ms[i]-mg[i]*mg[i]+p[3])
		w[i] -= mom[i]
	}
}

func widenComplex(dst []complex128, src []complex64) {
	for i, x := range src {
		dst[i] = complex128(x)
	}
}

func narrowComplex(dst []complex64, src []complex128) {
	for i, x := range src {
		dst[i] = complex64(x)
	}
}
