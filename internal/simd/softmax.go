package simd

import "math"

// softmaxKernels is the assembly of softmax, for float32 alone.
type softmaxKernels struct {
	rows levels[func(dst, src *float32, rows, cols int, largest, sum *float32)]
	sums levels[func(src *float32, rows, cols int, largest, sum *float32)]
}

var softmaxAsm softmaxKernels

// SoftmaxRows: dst = e^src / the sum of e^src, for each row of cols elements. It also sets largest[i] to the largest
// element of row i and sum[i] to the sum of e^(src - largest[i]): what cross entropies need besides.
func SoftmaxRows[T Float](dst, src []T, cols int, largest, sum []T) {
	rows := rowsOf(len(dst), cols)
	if rows == 0 {
		return
	}
	src, largest, sum = src[:len(dst)], largest[:rows], sum[:rows]
	l := Current()
	if l == Generic || !isFloat32[T]() {
		for i := range rows {
			softmaxGo(dst[i*cols:][:cols], src[i*cols:][:cols], &largest[i], &sum[i])
		}
		return
	}
	d, s, m, t := as[float32](dst), as[float32](src), as[float32](largest), as[float32](sum)
	if cols > piece {
		for i := range rows {
			softmaxLong(d[i*cols:][:cols], s[i*cols:][:cols], &m[i], &t[i])
		}
		return
	}
	step := max(1, piece/cols)
	for i := 0; i < rows; i += step {
		softmaxAsm.rows[l-1](&d[i*cols], &s[i*cols], min(step, rows-i), cols, &m[i], &t[i])
	}
}

// ExpSums sets largest[i] to the largest element of row i of src, whose rows have cols elements, and sum[i] to the sum
// of e^(src - largest[i]).
func ExpSums[T Float](largest, sum, src []T, cols int) {
	rows := rowsOf(len(src), cols)
	if rows == 0 {
		return
	}
	largest, sum = largest[:rows], sum[:rows]
	l := Current()
	if l == Generic || !isFloat32[T]() {
		for i := range rows {
			expSumGo(src[i*cols:][:cols], &largest[i], &sum[i])
		}
		return
	}
	s, m, t := as[float32](src), as[float32](largest), as[float32](sum)
	if cols > piece {
		for i := range rows {
			expSumLong(s[i*cols:][:cols], &m[i], &t[i])
		}
		return
	}
	step := max(1, piece/cols)
	for i := 0; i < rows; i += step {
		softmaxAsm.sums[l-1](&s[i*cols], min(step, rows-i), cols, &m[i], &t[i])
	}
}

// LogSoftmaxRows: dst = src - ln(the sum of e^src), for each row of cols elements. It also sets largest[i] to the largest
// element of row i and logSum[i] to ln(the sum of e^(src - largest[i])). dst may be src.
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

// softmaxLong is SoftmaxRows for a row that takes several calls.
func softmaxLong(dst, src []float32, largest, sum *float32) {
	expSumLong(src, largest, sum)
	SubScalar(dst, src, *largest)
	Exp(dst, dst)
	MulScalar(dst, dst, 1 / *sum)
}

// expSumLong adds up pieces with their own largest elements.
func expSumLong(src []float32, largest, sum *float32) {
	l := Current()
	m, s := math.Inf(-1), 0.0
	for i := 0; i < len(src); i += piece {
		softmaxAsm.sums[l-1](&src[i], 1, min(piece, len(src)-i), largest, sum)
		m, s = addExpSums(m, s, float64(*largest), float64(*sum))
	}
	*largest, *sum = float32(m), float32(s)
}

// addExpSums adds two sums of exponentials relative to their largest elements a and b.
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
