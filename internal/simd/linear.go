package simd

// linear has the kernels that combine slices with factors.
type linear[T Float] struct {
	axpy  levels[func(y, x *T, n int, a T)]
	axpby levels[func(dst, x, y *T, n int, a, b T)]
	axpy4 levels[func(y, x0, x1, x2, x3 *T, n int, a *[4]T)]
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

// Axpy4: y += a[0]*x0 + a[1]*x1 + a[2]*x2 + a[3]*x3, four steps of Axpy with one pass over y.
func Axpy4[T Float](y []T, a *[4]T, x0, x1, x2, x3 []T) {
	x0, x1, x2, x3 = x0[:len(y)], x1[:len(y)], x2[:len(y)], x3[:len(y)]
	l := Current()
	if l == Generic {
		for i := range y {
			y[i] += a[0]*x0[i] + a[1]*x1[i] + a[2]*x2[i] + a[3]*x3[i]
		}
		return
	}
	k := linearOf[T]()
	for i := 0; i < len(y); i += piece {
		k.axpy4[l-1](&y[i], &x0[i], &x1[i], &x2[i], &x3[i], min(piece, len(y)-i), a)
	}
}
