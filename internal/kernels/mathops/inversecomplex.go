package mathops

import (
	"math"
	"math/cmplx"
)

// Inverse functions of complex numbers by Kahan's formulas. Those of math/cmplx take logarithms of
// sums that cancel, and overflow for numbers far from 0. Non-finite numbers are left to math/cmplx.
// On a branch cut, the sign of a zero selects the side.

func ordinary(x complex128) bool { return !cmplx.IsInf(x) && !cmplx.IsNaN(x) }

// roots returns the square roots of 1-x and 1+x.
func roots(x complex128) (complex128, complex128) {
	return cmplx.Sqrt(complex(1-real(x), -imag(x))), cmplx.Sqrt(complex(1+real(x), imag(x)))
}

func complexAsin(x complex128) complex128 {
	if !ordinary(x) {
		return cmplx.Asin(x)
	}
	less, more := roots(x)
	return complex(math.Atan2(real(x), real(less)*real(more)-imag(less)*imag(more)),
		math.Asinh(real(less)*imag(more)-imag(less)*real(more)))
}

func complexAcos(x complex128) complex128 {
	if !ordinary(x) {
		return cmplx.Acos(x)
	}
	less, more := roots(x)
	return complex(2*math.Atan2(real(less), real(more)), math.Asinh(real(more)*imag(less)-imag(more)*real(less)))
}

func complexAsinh(x complex128) complex128 {
	if !ordinary(x) {
		return cmplx.Asinh(x)
	}
	y := complexAsin(complex(-imag(x), real(x)))
	return complex(imag(y), -real(y))
}

func complexAcosh(x complex128) complex128 {
	if !ordinary(x) {
		return cmplx.Acosh(x)
	}
	less, more := cmplx.Sqrt(complex(real(x)-1, imag(x))), cmplx.Sqrt(complex(real(x)+1, imag(x)))
	return complex(math.Asinh(real(less)*real(more)+imag(less)*imag(more)), 2*math.Atan2(imag(less), real(more)))
}

func complexAtanh(x complex128) complex128 {
	if !ordinary(x) {
		return cmplx.Atanh(x)
	}
	re, im := math.Abs(real(x)), imag(x)
	if max(re, math.Abs(im)) > 1e150 { // the squares would overflow
		return complex(real(1/x), math.Copysign(math.Pi/2, im))
	}
	return complex(math.Copysign(math.Log1p(4*re/((1-re)*(1-re)+im*im))/4, real(x)), math.Atan2(2*im, (1-re)*(1+re)-im*im)/2)
}

func complexAtan(x complex128) complex128 {
	if !ordinary(x) {
		return cmplx.Atan(x)
	}
	y := complexAtanh(complex(-imag(x), real(x)))
	return complex(imag(y), -real(y))
}

// complexTanh returns 1 or -1 far from the imaginary axis, where math/cmplx divides infinities.
func complexTanh(x complex128) complex128 {
	if re := math.Abs(real(x)); re > 22 && ordinary(x) {
		sin, cos := math.Sincos(imag(x))
		return complex(math.Copysign(1, real(x)), 4*sin*cos*math.Exp(-2*re))
	}
	return cmplx.Tanh(x)
}

func complexTan(x complex128) complex128 {
	if !ordinary(x) {
		return cmplx.Tan(x)
	}
	y := complexTanh(complex(-imag(x), real(x)))
	return complex(imag(y), -real(y))
}
