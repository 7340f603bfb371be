package simd

import "math"

// The kernels, with their portable loops. kernels_amd64.go adds the assembly.
var (
	neg        = unaryOf(negGo[float32], negGo[float64])
	abs        = unaryOf(absGo[float32], absGo[float64])
	square     = unaryOf(squareGo[float32], squareGo[float64])
	sqrt       = unaryOf(sqrtGo[float32], sqrtGo[float64])
	rsqrt      = unaryOf(rsqrtGo[float32], rsqrtGo[float64])
	reciprocal = unaryOf(reciprocalGo[float32], reciprocalGo[float64])
	relu       = unaryOf(reluGo[float32], reluGo[float64])
	exp        = unaryOf(expGo[float32], expGo[float64])
	log        = unaryOf(logGo[float32], logGo[float64])
	tanh       = unaryOf(tanhGo[float32], tanhGo[float64])
	sigmoid    = unaryOf(sigmoidGo[float32], sigmoidGo[float64])
	log1p      = unaryOf(each[float32](math.Log1p), each[float64](math.Log1p))
	expm1      = unaryOf(each[float32](math.Expm1), each[float64](math.Expm1))
	erf        = unaryOf(each[float32](math.Erf), each[float64](math.Erf))
	sin        = unaryOf(each[float32](math.Sin), each[float64](math.Sin))
	cos        = unaryOf(each[float32](math.Cos), each[float64](math.Cos))
	floor      = unaryOf(floorGo[float32], floorGo[float64])
	ceil       = unaryOf(ceilGo[float32], ceilGo[float64])
	rint       = unaryOf(rintGo[float32], rintGo[float64])
	sign       = unaryOf(signGo[float32], signGo[float64])

	add               = binaryOf(addGo[float32], addGo[float64])
	sub               = binaryOf(subGo[float32], subGo[float64])
	mul               = binaryOf(mulGo[float32], mulGo[float64])
	div               = binaryOf(divGo[float32], divGo[float64])
	maximum           = binaryOf(maxGo[float32], maxGo[float64])
	minimum           = binaryOf(minGo[float32], minGo[float64])
	squaredDifference = binaryOf(squaredDifferenceGo[float32], squaredDifferenceGo[float64])
	reluGrad          = binaryOf(reluGradGo[float32], reluGradGo[float64])
	tanhGrad          = binaryOf(tanhGradGo[float32], tanhGradGo[float64])
	sigmoidGrad       = binaryOf(sigmoidGradGo[float32], sigmoidGradGo[float64])
	divNoNaN          = binaryOf(divNoNaNGo[float32], divNoNaNGo[float64])
	mulNoNaN          = binaryOf(mulNoNaNGo[float32], mulNoNaNGo[float64])
	pow               = binaryOf(powGo[float32], powGo[float64])

	addScalar = scalarOf(addScalarGo[float32], addScalarGo[float64])
	mulScalar = scalarOf(mulScalarGo[float32], mulScalarGo[float64])
	divScalar = scalarOf(divScalarGo[float32], divScalarGo[float64])
	maxScalar = scalarOf(maxScalarGo[float32], maxScalarGo[float64])
	minScalar = scalarOf(minScalarGo[float32], minScalarGo[float64])
	scalarSub = scalarOf(scalarSubGo[float32], scalarSubGo[float64])
	scalarDiv = scalarOf(scalarDivGo[float32], scalarDivGo[float64])
)

func unaryOf(f func(dst, src []float32), d func(dst, src []float64)) unaryPair {
	return unaryPair{unary[float32]{pure: f}, unary[float64]{pure: d}}
}

func binaryOf(f func(dst, a, b []float32), d func(dst, a, b []float64)) binaryPair {
	return binaryPair{binary[float32]{pure: f}, binary[float64]{pure: d}}
}

func scalarOf(f func(dst, a []float32, b float32), d func(dst, a []float64, b float64)) scalarPair {
	return scalarPair{scalar[float32]{pure: f}, scalar[float64]{pure: d}}
}

// each returns a loop that applies a function of one number.
func each[T Float](f func(float64) float64) func(dst, src []T) {
	return func(dst, src []T) {
		for i, x := range src {
			dst[i] = T(f(float64(x)))
		}
	}
}

func negGo[T Float](dst, src []T) {
	for i, x := range src {
		dst[i] = -x
	}
}

func absGo[T Float](dst, src []T) {
	for i, x := range src {
		dst[i] = T(math.Abs(float64(x)))
	}
}

func squareGo[T Float](dst, src []T) {
	for i, x := range src {
		dst[i] = x * x
	}
}

func sqrtGo[T Float](dst, src []T) {
	for i, x := range src {
		dst[i] = T(math.Sqrt(float64(x)))
	}
}

func rsqrtGo[T Float](dst, src []T) {
	for i, x := range src {
		dst[i] = T(1 / math.Sqrt(float64(x)))
	}
}

func reciprocalGo[T Float](dst, src []T) {
	for i, x := range src {
		dst[i] = 1 / x
	}
}

func floorGo[T Float](dst, src []T) {
	for i, x := range src {
		dst[i] = T(math.Floor(float64(x)))
	}
}

func ceilGo[T Float](dst, src []T) {
	for i, x := range src {
		dst[i] = T(math.Ceil(float64(x)))
	}
}

func rintGo[T Float](dst, src []T) {
	for i, x := range src {
		dst[i] = T(math.RoundToEven(float64(x)))
	}
}

func signGo[T Float](dst, src []T) {
	for i, x := range src {
		switch {
		case x > 0:
			x = 1
		case x < 0:
			x = -1
		}
		dst[i] = x
	}
}

func reluGo[T Float](dst, src []T) {
	for i, x := range src {
		if x < 0 {
			x = 0
		}
		dst[i] = x
	}
}

func expGo[T Float](dst, src []T) {
	for i, x := range src {
		dst[i] = T(math.Exp(float64(x)))
	}
}

func logGo[T Float](dst, src []T) {
	for i, x := range src {
		dst[i] = T(math.Log(float64(x)))
	}
}

func tanhGo[T Float](dst, src []T) {
	for i, x := range src {
		dst[i] = T(math.Tanh(float64(x)))
	}
}

func sigmoidGo[T Float](dst, src []T) {
	for i, x := range src {
		dst[i] = T(1 / (1 + math.Exp(-float64(x))))
	}
}

func addGo[T Float](dst, a, b []T) {
	for i, x := range a {
		dst[i] = x + b[i]
	}
}

func subGo[T Float](dst, a, b []T) {
	for i, x := range a {
		dst[i] = x - b[i]
	}
}

func mulGo[T Float](dst, a, b []T) {
	for i, x := range a {
		dst[i] = x * b[i]
	}
}

func divGo[T Float](dst, a, b []T) {
	for i, x := range a {
		dst[i] = x / b[i]
	}
}

func maxGo[T Float](dst, a, b []T) {
	for i, x := range a {
		dst[i] = max(x, b[i])
	}
}

func minGo[T Float](dst, a, b []T) {
	for i, x := range a {
		dst[i] = min(x, b[i])
	}
}

func squaredDifferenceGo[T Float](dst, a, b []T) {
	for i, x := range a {
		d := x - b[i]
		dst[i] = d * d
	}
}

func reluGradGo[T Float](dst, grad, x []T) {
	for i, g := range grad {
		if !(x[i] > 0) {
			g *= 0
		}
		dst[i] = g
	}
}

func tanhGradGo[T Float](dst, grad, y []T) {
	for i, g := range grad {
		dst[i] = g * (1 - y[i]*y[i])
	}
}

func sigmoidGradGo[T Float](dst, grad, y []T) {
	for i, g := range grad {
		dst[i] = g * (1 - y[i]) * y[i]
	}
}

func divNoNaNGo[T Float](dst, a, b []T) {
	for i, y := range b {
		var q T
		if y != 0 {
			q = a[i] / y
		}
		dst[i] = q
	}
}

func mulNoNaNGo[T Float](dst, a, b []T) {
	for i, y := range b {
		var p T
		if y != 0 {
			p = a[i] * y
		}
		dst[i] = p
	}
}

func powGo[T Float](dst, a, b []T) {
	for i, x := range a {
		dst[i] = T(math.Pow(float64(x), float64(b[i])))
	}
}

func addScalarGo[T Float](dst, a []T, b T) {
	for i, x := range a {
		dst[i] = x + b
	}
}

func mulScalarGo[T Float](dst, a []T, b T) {
	for i, x := range a {
		dst[i] = x * b
	}
}

func divScalarGo[T Float](dst, a []T, b T) {
	for i, x := range a {
		dst[i] = x / b
	}
}

func maxScalarGo[T Float](dst, a []T, b T) {
	for i, x := range a {
		dst[i] = max(x, b)
	}
}

func minScalarGo[T Float](dst, a []T, b T) {
	for i, x := range a {
		dst[i] = min(x, b)
	}
}

func scalarSubGo[T Float](dst, a []T, b T) {
	for i, x := range a {
		dst[i] = b - x
	}
}

func scalarDivGo[T Float](dst, a []T, b T) {
	for i, x := range a {
		dst[i] = b / x
	}
}
