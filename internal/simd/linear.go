package simd

// linear has the kernels that combine slices with factors.
type linear[T Float] struct {
	axpy  levels[func(y, x *T, n int, a T)]
	axpby levels[func(dst, x, y *T, n int, a, b T)]
}

var linears pair[linear[float32], linear[float64]]

// linearOf returns the kernels for T.
func linearOf[T Float]() *linear[T] {
	if isFloat32[T]() {
		return cast[linear[T]](&linears.f32)
	}
	return cast[linear[T]](&linears.f64)
}

// Axpy: y += a*x.
func Axpy[T Float](y []T, a T, x []T) {
	x = x[:len(y)]
	l := Current()
	if l == Generic {
		for i, v := range x {
			y[i] += a * v
		}
		return
	}
	k := linearOf[T]()
	for i := 0; i < len(y); i += piece {
		k.axpy[l-1](&y[i], &x[i], min(piece, len(y)-i), a)
	}
}

// Axpby: dst = a*x + b*y.
func Axpby[T Float](dst []T, a T, x []T, b T, y []T) {
	x, y = x[:len(dst)], y[:len(dst)]
	l := Current()
	if l == Generic {
		for i, v := range x {
			dst[i] = a*v + b*y[i]
		}
		return
	}
	k := linearOf[T]()
	for i := 0; i < len(dst); i += piece {
		k.axpby[l-1](&dst[i], &x[i], &y[i], min(piece, len(dst)-i), a, b)
	}
}
