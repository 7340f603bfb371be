package boosted

import (
	"math"

	"github.com/weft-ml/weft/internal/sys/membudget"
)

// tolerance is the difference from which TensorFlow takes gains for different.
const tolerance = 1e-15

// larger reports whether gain a is larger than b.
func larger(a, b float32) bool { return a-b >= tolerance }

// same reports whether two gains are equal.
func same(a, b float32) bool { return math.Abs(float64(a-b)) < tolerance }

// regularization holds the factors of the penalties of leaf weights.
type regularization struct{ l1, l2 float32 }

// leaf returns the optimal weights of a leaf and its gain: the decrease of the loss, from the sums
// of gradients and hessians of the examples in the leaf. The hessians are one number for each
// gradient, or a full matrix.
func (r regularization) leaf(g, h []float32) (weights []float32, gain float32) {
	switch {
	case len(g) == 1:
		w, gain := r.single(g[0], h[0])
		return []float32{w}, gain
	case len(h) == len(g)*len(g):
		m := membudget.Make[float32](len(h))
		for i := range g {
			for j := range g {
				m[i*len(g)+j] = h[j*len(g)+i] // by columns
			}
			m[i*len(g)+i] += r.l2
		}
		return weighted(g, solve(m, g))
	case len(h) == len(g):
		return r.diagonal(g, h)
	}
	return membudget.Make[float32](len(g)), 0
}

// single returns the weight and the gain of a leaf with one logit.
func (r regularization) single(g, h float32) (weight, gain float32) {
	if r.l1 > 0 {
		switch {
		case g > r.l1:
			g -= r.l1
		case g < -r.l1:
			g += r.l1
		default:
			return 0, 0
		}
	}
	if h+r.l2 <= tolerance {
		return 0, 0
	}
	weight = -g / (h + r.l2)
	return weight, -g * weight
}

// diagonal returns the weights and the gain of a leaf whose hessian is diagonal.
func (r regularization) diagonal(g, h []float32) (weights []float32, gain float32) {
	weights = membudget.Make[float32](len(g))
	for i := range g {
		d := h[i] + r.l2
		if d == 0 {
			m := membudget.Make[float32](len(g) * len(g))
			for j := range g {
				m[j*len(g)+j] = h[j] + r.l2
			}
			return weighted(g, solve(m, g))
		}
		weights[i] = -(1 / d) * g[i]
		gain += -g[i] * weights[i]
	}
	return weights, gain
}

// weighted returns the weights -x and their gain.
func weighted(g, x []float32) (weights []float32, gain float32) {
	for i := range x {
		x[i] = -x[i]
		gain += -g[i] * x[i]
	}
	return x, gain
}

// solve returns the solution of a square system with the matrix a by a QR decomposition with
// exchanged columns. If a is singular, it is a basic solution of least squares. solve overwrites a.
func solve(a, b []float32) []float32 {
	n := len(b)
	y, order := append([]float32(nil), b...), make([]int, n) //sizedmake:ok b is part of a tensor
	norm := func(col, from int) (sum float64) {
		for i := from; i < n; i++ {
			sum += float64(a[i*n+col]) * float64(a[i*n+col])
		}
		return sum
	}
	largest := 0.0
	for j := range n {
		order[j] = j
		largest = max(largest, norm(j, 0))
	}
	const epsilon = 1.0 / (1 << 23) // of a float32
	threshold := largest * epsilon * epsilon / float64(n)
	rank := 0
	for ; rank < n; rank++ {
		best := rank
		for j := rank + 1; j < n; j++ {
			if norm(j, rank) > norm(best, rank) {
				best = j
			}
		}
		if norm(best, rank) < threshold*float64(n-rank) || norm(best, rank) == 0 {
			break
		}
		for i := range n {
			a[i*n+rank], a[i*n+best] = a[i*n+best], a[i*n+rank]
		}
		order[rank], order[best] = order[best], order[rank]
		reflect(a, y, n, rank)
	}
	x := make([]float32, n) //sizedmake:ok b is part of a tensor
	for i := rank - 1; i >= 0; i-- {
		sum := y[i]
		for j := i + 1; j < rank; j++ {
			sum -= a[i*n+j] * x[order[j]]
		}
		x[order[i]] = sum / a[i*n+i]
	}
	return x
}

// reflect applies the Householder reflection that clears column k of a below its diagonal to the
// columns from k on, and to y.
func reflect(a, y []float32, n, k int) {
	tail := 0.0
	for i := k + 1; i < n; i++ {
		tail += float64(a[i*n+k]) * float64(a[i*n+k])
	}
	if tail == 0 {
		return
	}
	head := float64(a[k*n+k])
	beta := math.Sqrt(head*head + tail)
	if head >= 0 {
		beta = -beta
	}
	v := make([]float64, n) //sizedmake:ok n is the size of an existing matrix
	for i := k + 1; i < n; i++ {
		v[i] = float64(a[i*n+k]) / (head - beta)
	}
	v[k] = 1
	tau := (beta - head) / beta
	apply := func(get func(i int) *float32) {
		sum := 0.0
		for i := k; i < n; i++ {
			sum += v[i] * float64(*get(i))
		}
		for i := k; i < n; i++ {
			p := get(i)
			*p = float32(float64(*p) - tau*sum*v[i])
		}
	}
	for j := k; j < n; j++ {
		apply(func(i int) *float32 { return &a[i*n+j] })
	}
	apply(func(i int) *float32 { return &y[i] })
}
