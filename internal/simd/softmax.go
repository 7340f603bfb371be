package simd

import "math"

// expSums has the assembly of sums of exponentials, for float32 alone.
type expSums struct {
	store levels[func(dst, src *float32, n int, sub float32) float32]
	sum   levels[func(src *float32, n int, sub float32) float32]
}

var expSum expSums

// ExpSubSum: dst = e^(src - sub); it returns the sum of dst.
func ExpSubSum[T Float](dst, src []T, sub T) T {
	src = src[:len(dst)]
	l := Current()
	if l == Generic || !isFloat32[T]() {
		return expSubSumGo(dst, src, sub)
	}
	d, s := as[float32](dst), as[float32](src)
	sum := 0.0
	for i := 0; i < len(d); i += piece {
		sum += float64(expSum.store[l-1](&d[i], &s[i], min(piece, len(d)-i), float32(sub)))
	}
	return T(sum)
}

// SumExpSub returns the sum of e^(src - sub).
func SumExpSub[T Float](src []T, sub T) T {
	l := Current()
	if l == Generic || !isFloat32[T]() {
		sum := 0.0
		for _, x := range src {
			sum += math.Exp(float64(x - sub))
		}
		return T(sum)
	}
	s := as[float32](src)
	sum := 0.0
	for i := 0; i < len(s); i += piece {
		sum += float64(expSum.sum[l-1](&s[i], min(piece, len(s)-i), float32(sub)))
	}
	return T(sum)
}

// Softmax: dst = e^src / the sum of e^src, for one row.
func Softmax[T Float](dst, src []T) {
	sum := ExpSubSum(dst, src, MaxOf(src))
	MulScalar(dst, dst, 1/sum)
}

// LogSoftmax: dst = src - ln(the sum of e^src), for one row.
func LogSoftmax[T Float](dst, src []T) {
	largest := MaxOf(src)
	logSum := T(math.Log(float64(SumExpSub(src, largest))))
	SubScalar(dst, src, largest)
	SubScalar(dst, dst, logSum)
}

func expSubSumGo[T Float](dst, src []T, sub T) T {
	sum := 0.0
	for i, x := range src {
		e := math.Exp(float64(x - sub))
		dst[i] = T(e)
		sum += e
	}
	return T(sum)
}
