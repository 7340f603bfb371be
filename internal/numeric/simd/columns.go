package simd

import (
	"unsafe"

	"github.com/weft-ml/weft/internal/sys/bulk"
)

// columnKernels holds kernels over the rows of a matrix. stride is in bytes.
type columnKernels[T Float] struct {
	sum levels[func(acc, x *T, stride, rows, cols int)]
	max levels[func(acc, x *T, stride, rows, cols int)]
	min levels[func(acc, x *T, stride, rows, cols int)]
	add levels[func(dst, x, v *T, stride, rows, cols int)]
	mul levels[func(dst, x, v *T, stride, rows, cols int)]

	subColumns levels[func(dst, x, a, b *T, rows, cols int)]
}

var columns pair[columnKernels[float32], columnKernels[float64]]

func columnsOf[T Float]() *columnKernels[T] {
	if isFloat32[T]() {
		return cast[columnKernels[T]](&columns.f32)
	}
	return cast[columnKernels[T]](&columns.f64)
}

// SumColumns computes acc[j] += the sum over i of x[i*len(acc)+j]. x must have whole rows of
// len(acc) elements.
func SumColumns[T Float](acc, x []T) { SumPanel(acc, x, len(acc)) }

// SumPanel computes acc[j] += the sum over i of x[i*stride+j]. Rows of x have len(acc) elements and
// are stride apart.
func SumPanel[T Float](acc, x []T, stride int) {
	rows := panelRows(acc, x, stride)
	switch l := Current(); {
	case l == Generic:
		sumPanelGo(acc, x, stride, rows)
		return
	case rows == 0 || len(acc) < wideRow:
		foldPanel(acc, x, stride, columnsOf[T]().sum, Add)
		return
	}
	// In a wide matrix every step down a column is on another page, so process it along the rows.
	for i := 0; i < rows; i += len(ones32) {
		AddRows(acc, onesOf[T]()[:min(len(ones32), rows-i)], x[i*stride:], stride)
	}
}

// sumPanelGo sums in float64, because it lacks the partial sums of vector code that limit rounding
// errors.
func sumPanelGo[T Float](acc, x []T, stride, rows int) {
	var sums [64]float64
	for lo := 0; lo < len(acc); lo += len(sums) {
		some := acc[lo:min(len(acc), lo+len(sums))]
		for j, v := range some {
			sums[j] = float64(v)
		}
		for i := range rows {
			for j, v := range x[i*stride+lo:][:len(some)] {
				sums[j] += float64(v)
			}
		}
		for j := range some {
			some[j] = T(sums[j])
		}
	}
}

// MaxPanel computes acc[j] = max(acc[j], x[i*stride+j]) over all i. Rows of x have len(acc)
// elements and are stride apart.
func MaxPanel[T Float](acc, x []T, stride int) { foldPanel(acc, x, stride, columnsOf[T]().max, Max) }

// MinPanel computes acc[j] = min(acc[j], x[i*stride+j]) over all i. Rows of x have len(acc)
// elements and are stride apart.
func MinPanel[T Float](acc, x []T, stride int) { foldPanel(acc, x, stride, columnsOf[T]().min, Min) }

// panelRows returns the number of rows of x. The last row may end before the next one would start.
func panelRows[T Float](acc, x []T, stride int) int {
	if len(acc) == 0 || len(x) < len(acc) {
		return 0
	}
	return (len(x)-len(acc))/stride + 1
}

func foldPanel[T Float](acc, x []T, stride int, asm levels[func(acc, x *T, stride, rows, cols int)], byRow func(dst, a, b []T)) {
	rows, cols := panelRows(acc, x, stride), len(acc)
	if rows == 0 {
		return
	}
	l := Current()
	if l == Generic || cols >= wideRow {
		for i := range rows {
			byRow(acc, acc, x[i*stride:][:cols])
		}
		return
	}
	f := asm[l-1]
	for step := piece / cols; rows > 0; rows -= step {
		f(&acc[0], &x[0], stride*size[T](), min(step, rows), cols)
		if rows > step {
			x = x[step*stride:]
		}
	}
}

// wideRow is the number of columns from which on a matrix is processed row by row instead of panel
// by panel.
const wideRow = 256

var (
	ones32 [64]float32
	ones64 [len(ones32)]float64
)

func init() {
	for i := range ones32 {
		ones32[i], ones64[i] = 1, 1
	}
}

func onesOf[T Float]() []T {
	if isFloat32[T]() {
		return as[T](ones32[:])
	}
	return as[T](ones64[:])
}

// AddRow computes dst[i*len(v)+j] = x[i*len(v)+j] + v[j] for whole rows of len(v) elements: it adds
// a bias.
func AddRow[T Float](dst, x, v []T) {
	mapRows(dst, x, v, columnsOf[T]().add, Add)
}

// MulRow computes dst[i*len(v)+j] = x[i*len(v)+j] * v[j] for whole rows of len(v) elements.
func MulRow[T Float](dst, x, v []T) {
	mapRows(dst, x, v, columnsOf[T]().mul, Mul)
}

func mapRows[T Float](dst, x, v []T, asm levels[func(dst, x, v *T, stride, rows, cols int)], byRow func(dst, a, b []T)) {
	cols := len(v)
	if cols == 0 || len(dst) == 0 {
		return
	}
	x = x[:len(dst)]
	l := Current()
	if l == Generic || cols >= wideRow {
		for i := 0; i < len(dst); i += cols {
			byRow(dst[i:i+cols], x[i:i+cols], v)
		}
		return
	}
	forRows(len(dst)/cols, cols, func(row, rows, col, n int) {
		at := row*cols + col
		asm[l-1](&dst[at], &x[at], &v[col], cols*size[T](), rows, n)
	})
}

// SubColumns computes dst[i*cols+j] = x[i*cols+j] - a[i] - b[i] for whole rows of cols elements.
func SubColumns[T Float](dst, x, a, b []T, cols int) {
	rows := rowsOf(len(dst), cols)
	x, a, b = x[:len(dst)], a[:rows], b[:rows]
	l := Current()
	if l == Generic || cols > piece {
		for i := range rows {
			row := dst[i*cols:][:cols]
			SubScalar(row, x[i*cols:], a[i])
			SubScalar(row, row, b[i])
		}
		return
	}
	f := columnsOf[T]().subColumns[l-1]
	forRows(rows, max(cols, 1), func(row, n, _, _ int) { f(&dst[row*cols], &x[row*cols], &a[row], &b[row], n, cols) })
}

// forRows calls f for pieces of a matrix: some rows, or a part of one row if rows are long.
func forRows(rows, cols int, f func(row, rows, col, cols int)) {
	step := max(1, piece/cols)
	for r := 0; r < rows; r += step {
		for c := 0; c < cols; c += piece {
			bulk.SafePoint()
			f(r, min(step, rows-r), c, min(piece, cols-c))
		}
	}
}

func size[T Float]() int { return int(unsafe.Sizeof(T(0))) }

func cast[To, From any](p *From) *To { return (*To)(unsafe.Pointer(p)) }
