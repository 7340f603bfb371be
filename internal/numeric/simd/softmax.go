package simd

import (
	"math"

	"github.com/weft-ml/weft/internal/sys/bulk"
)

// softmaxKernels holds the assembly of softmax.
type softmaxKernels[T Float] struct {
	rows levels[func(dst, src *T, rows, cols int, largest, sum *T)]
	sums levels[func(src *T, rows, cols int, largest, sum *T)]
}

var softmaxAsm pair[softmaxKernels[float32], softmaxKernels[float64]]

func softmaxOf[T Float]() *softmaxKernels[T] {
	if isFloat32[T]() {
		return cast[softmaxKernels[T]](&softmaxAsm.f32)
	}
	return cast[softmaxKernels[T]](&softmaxAsm.f64)
}

// SoftmaxRows computes dst = e^src / the sum of e^src for each row of cols elements. It also sets
// largest[i] to the largest element of row i, and sum[i] to the sum of e^(src - largest[i]). The
// cross entropy uses these.
func SoftmaxRows[T Float](dst, src []T, cols int, largest, sum []T) {
	rows := rowsOf(len(dst), cols)
	if rows == 0 {
		return
	}
	src, largest, sum = src[:len(dst)], largest[:rows], sum[:rows]
	l := Current()
	if l == Generic {
		for i := range rows {
			softmaxGo(dst[i*cols:][:cols], src[i*cols:][:cols], &largest[i], &sum[i])
		}
		return
	}
	if cols > piece {
		for i := range rows {
			softmaxLong(dst[i*cols:][:cols], src[i*cols:][:cols], &largest[i], &sum[i])
		}
		return
	}
	step, f := max(1, piece/cols), softmaxOf[T]().rows[l-1]
	for i := 0; i < rows; i += step {
		f(&dst[i*cols], &src[i*cols], min(step, rows-i), cols, &largest[i], &sum[i])
	}
}

// ExpSums sets largest[i] to the largest element of row i of src, and sum[i] to the sum of e^(src -
// largest[i]). Rows have cols elements.
func ExpSums[T Float](largest, sum, src []T, cols int) {
	rows := rowsOf(len(src), cols)
	if rows == 0 {
		return
	}
	largest, sum = largest[:rows], sum[:rows]
	l := Current()
	if l == Generic {
		for i := range rows {
			expSumGo(src[i*cols:][:cols], &largest[i], &sum[i])
		}
		return
	}
	if cols > piece {
		for i := range rows {
			expSumLong(src[i*cols:][:cols], &largest[i], &sum[i])
		}
		return
	}
	step, f := max(1, piece/cols), softmaxOf[T]().sums[l-1]
	for i := 0; i < rows; i += step {
		f(&src[i*cols], min(step, rows-i), cols, &largest[i], &sum[i])
	}
}

// LogSoftmaxRows computes dst = src - ln(the sum of e^src) for each row of cols elements. It also
// sets largest[i] to the largest element of row i, and logSum[i] to ln(the sum of e^(src -
// largest[i])). dst may be src.
func LogSoftmaxRows[T Float](dst, src []T, cols int, largest, logSum []T) {
	src = src[:len(dst)]
	ExpSums(largest, logSum, src, cols)
	rows := rowsOf(len(dst), cols)
	Log(logSum[:rows], logSum)
	SubColumns(dst, src, largest, logSum, cols)
}

func rowsOf(n, cols int) int {
	if n == 0 || cols == 0 {
		return 0
	}
	return n / cols
}

// softmaxLong is SoftmaxRows for a row longer than one piece.
func softmaxLong[T Float](dst, src []T, largest, sum *T) {
	expSumLong(src, largest, sum)
	SubScalar(dst, src, *largest)
	Exp(dst, dst)
	MulScalar(dst, dst, 1 / *sum)
}

// expSumLong sums pieces relative to their own largest elements and combines the sums.
func expSumLong[T Float](src []T, largest, sum *T) {
	f := softmaxOf[T]().sums[Current()-1]
	m, s := math.Inf(-1), 0.0
	for i := 0; i < len(src); i += piece {
		bulk.SafePoint()
		f(&src[i], 1, min(piece, len(src)-i), largest, sum)
		m, s = addExpSums(m, s, float64(*largest), float64(*sum))
	}
	*largest, *sum = T(m), T(s)
}

// addExpSums adds two sums of exponentials that are relative to their largest elements a and b.
func addExpSums(a, sumA, b, sumB float64) (largest, sum float64) {
	if math.IsInf(a, -1) && sumA == 0 {
		return b, sumB
	}
	largest = max(a, b)
	return largest, sumA*math.Exp(a-largest) + sumB*math.Exp(b-largest)
}

func softmaxGo[T Float](dst, src []T, largest, sum *T) {
	m := MaxOf(src)
	s := 0.0
	for i, x := range src {
		e := math.Exp(float64(x - m))
		dst[i] = T(e)
		s += e
	}
	mulScalarGo(dst, dst, T(1/s))
	*largest, *sum = m, T(s)
}

func expSumGo[T Float](src []T, largest, sum *T) {
	m := MaxOf(src)
	s := 0.0
	for _, x := range src {
		s += math.Exp(float64(x - m))
	}
	*largest, *sum = m, T(s)
}
