package simd

// matvec holds kernels that read a matrix once, four rows at a time. stride is in bytes.
type matvec[T Float] struct {
	addRows levels[func(y, x *T, stride int, coef *T, fours, n int)]
	dotRows levels[func(dst, x *T, stride int, y *T, fours, n int)]

	addListed levels[func(y, x *T, list *int64, stride int, coef *T, rows, n int)]
}

var matvecs pair[matvec[float32], matvec[float64]]

func matvecOf[T Float]() *matvec[T] {
	if isFloat32[T]() {
		return cast[matvec[T]](&matvecs.f32)
	}
	return cast[matvec[T]](&matvecs.f64)
}

// matvecPiece is the number of elements of a matrix per call.
const matvecPiece = 4 * piece

// AddRows computes y += the sum over i of coef[i] times row i of x. Rows are stride elements apart
// and have the length of y.
func AddRows[T Float](y, coef, x []T, stride int) {
	if len(y) == 0 || len(coef) == 0 {
		return
	}
	_ = x[(len(coef)-1)*stride+len(y)-1]
	fours := 0
	if l := Current(); l != Generic {
		fours = len(coef) / 4
		f := matvecOf[T]().addRows[l-1]
		for j := 0; j < len(y); j += sumPiece { // a part of y that stays in the L1 cache
			n := min(sumPiece, len(y)-j)
			step := max(1, matvecPiece/(4*n))
			for i := 0; i < fours; i += step {
				f(&y[j], &x[4*i*stride+j], stride*size[T](), &coef[4*i], min(step, fours-i), n)
			}
		}
	}
	for i := 4 * fours; i < len(coef); i++ {
		Axpy(y, coef[i], x[i*stride:])
	}
}

// AddListed computes y += the sum over i of coef[i] times row list[i*stride] of x. Rows have the
// length of y. All listed rows must exist.
func AddListed[T Float](y, x []T, list []int64, stride int, coef []T) {
	if len(y) == 0 || len(coef) == 0 {
		return
	}
	_ = list[(len(coef)-1)*stride]
	if l := Current(); l != Generic {
		f := matvecOf[T]().addListed[l-1]
		step := max(1, matvecPiece/len(y))
		for i := 0; i < len(coef); i += step {
			f(&y[0], &x[0], &list[i*stride], 8*stride, &coef[i], min(step, len(coef)-i), len(y))
		}
		return
	}
	for i, c := range coef {
		Axpy(y, c, x[int(list[i*stride])*len(y):])
	}
}

// DotRows sets dst[i] to the sum over j of x[i*stride+j]*y[j], for rows of the length of y.
func DotRows[T Float](dst, x []T, stride int, y []T) {
	if len(dst) == 0 {
		return
	}
	n, done := len(y), 0
	if l := Current(); l != Generic && 0 < n && n <= sumPiece {
		_ = x[(len(dst)-1)*stride+n-1]
		f := matvecOf[T]().dotRows[l-1]
		fours := len(dst) / 4
		step := max(1, matvecPiece/(4*n))
		for i := 0; i < fours; i += step {
			f(&dst[4*i], &x[4*i*stride], stride*size[T](), &y[0], min(step, fours-i), n)
		}
		done = 4 * fours
	}
	for i := done; i < len(dst); i++ {
		dst[i] = Dot(y, x[i*stride:])
	}
}
