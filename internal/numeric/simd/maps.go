package simd

import "github.com/weft-ml/weft/internal/sys/bulk"

// Maps of one slice.

// Neg computes dst = -src.
func Neg[T Float](dst, src []T) { runUnary(&neg, dst, src) }

// Abs computes dst = |src|.
func Abs[T Float](dst, src []T) { runUnary(&abs, dst, src) }

// Square computes dst = src².
func Square[T Float](dst, src []T) { runUnary(&square, dst, src) }

// Sqrt computes dst = √src.
func Sqrt[T Float](dst, src []T) { runUnary(&sqrt, dst, src) }

// Rsqrt computes dst = 1/√src.
func Rsqrt[T Float](dst, src []T) { runUnary(&rsqrt, dst, src) }

// Reciprocal computes dst = 1/src.
func Reciprocal[T Float](dst, src []T) { runUnary(&reciprocal, dst, src) }

// Relu computes dst = max(src, 0).
func Relu[T Float](dst, src []T) { runUnary(&relu, dst, src) }

// Exp computes dst = e^src.
func Exp[T Float](dst, src []T) { runUnary(&exp, dst, src) }

// Log computes dst = ln src.
func Log[T Float](dst, src []T) { runUnary(&log, dst, src) }

// Tanh computes dst = tanh src.
func Tanh[T Float](dst, src []T) { runUnary(&tanh, dst, src) }

// Sigmoid computes dst = 1/(1 + e^-src).
func Sigmoid[T Float](dst, src []T) { runUnary(&sigmoid, dst, src) }

// Log1p computes dst = ln(1 + src).
func Log1p[T Float](dst, src []T) { runUnary(&log1p, dst, src) }

// Expm1 computes dst = e^src - 1.
func Expm1[T Float](dst, src []T) { runUnary(&expm1, dst, src) }

// Erf computes dst = the error function of src.
func Erf[T Float](dst, src []T) { runUnary(&erf, dst, src) }

// Sin computes dst = sin src.
func Sin[T Float](dst, src []T) { runNear(&sin, dst, src) }

// Cos computes dst = cos src.
func Cos[T Float](dst, src []T) { runNear(&cos, dst, src) }

// farAway is the largest argument for which the assembly of the trigonometric functions is
// accurate.
const farAway = 1 << 20

// runNear is runUnary for functions whose assembly requires arguments near zero.
func runNear[T Float](k *unaryPair, dst, src []T) {
	for lo := 0; lo < len(dst); lo += piece {
		bulk.SafePoint()
		hi := min(lo+piece, len(dst))
		x := src[lo:hi]
		switch {
		case MaxOf(x) <= farAway && MinOf(x) >= -farAway:
			runUnary(k, dst[lo:hi], x)
		case isFloat32[T]():
			k.f32.pure(as[float32](dst[lo:hi]), as[float32](x))
		default:
			k.f64.pure(as[float64](dst[lo:hi]), as[float64](x))
		}
	}
}

// Floor computes dst = ⌊src⌋.
func Floor[T Float](dst, src []T) { runUnary(&floor, dst, src) }

// Ceil computes dst = ⌈src⌉.
func Ceil[T Float](dst, src []T) { runUnary(&ceil, dst, src) }

// Rint computes dst = the integer nearest to src, ties to even.
func Rint[T Float](dst, src []T) { runUnary(&rint, dst, src) }

// Sign sets dst to -1, 0 or 1, the sign of src.
func Sign[T Float](dst, src []T) { runUnary(&sign, dst, src) }

// Maps of two slices.

// Add computes dst = a + b.
func Add[T Float](dst, a, b []T) { runBinary(&add, dst, a, b) }

// Sub computes dst = a - b.
func Sub[T Float](dst, a, b []T) { runBinary(&sub, dst, a, b) }

// Mul computes dst = a * b.
func Mul[T Float](dst, a, b []T) { runBinary(&mul, dst, a, b) }

// Div computes dst = a / b.
func Div[T Float](dst, a, b []T) { runBinary(&div, dst, a, b) }

// Max computes dst = max(a, b).
func Max[T Float](dst, a, b []T) { runBinary(&maximum, dst, a, b) }

// Min computes dst = min(a, b).
func Min[T Float](dst, a, b []T) { runBinary(&minimum, dst, a, b) }

// SquaredDifference computes dst = (a - b)².
func SquaredDifference[T Float](dst, a, b []T) { runBinary(&squaredDifference, dst, a, b) }

// ReluGrad sets dst to grad where x > 0, and to 0*grad elsewhere. x is the input or the output of
// Relu.
func ReluGrad[T Float](dst, grad, x []T) { runBinary(&reluGrad, dst, grad, x) }

// TanhGrad computes dst = grad * (1 - y²) for y = tanh x.
func TanhGrad[T Float](dst, grad, y []T) { runBinary(&tanhGrad, dst, grad, y) }

// SigmoidGrad computes dst = grad * (1 - y) * y for y = sigmoid x.
func SigmoidGrad[T Float](dst, grad, y []T) { runBinary(&sigmoidGrad, dst, grad, y) }

// DivNoNaN computes dst = a / b, or 0 where b is 0.
func DivNoNaN[T Float](dst, a, b []T) { runBinary(&divNoNaN, dst, a, b) }

// MulNoNaN computes dst = a * b, or 0 where b is 0.
func MulNoNaN[T Float](dst, a, b []T) { runBinary(&mulNoNaN, dst, a, b) }

// Pow computes dst = a^b.
func Pow[T Float](dst, a, b []T) { runBinary(&pow, dst, a, b) }

// Maps of a slice and a number.

// AddScalar computes dst = a + b.
func AddScalar[T Float](dst, a []T, b T) { runScalar(&addScalar, dst, a, b) }

// SubScalar computes dst = a - b.
func SubScalar[T Float](dst, a []T, b T) { runScalar(&addScalar, dst, a, -b) }

// ScalarSub computes dst = a - b.
func ScalarSub[T Float](dst []T, a T, b []T) { runScalar(&scalarSub, dst, b, a) }

// MulScalar computes dst = a * b.
func MulScalar[T Float](dst, a []T, b T) { runScalar(&mulScalar, dst, a, b) }

// DivScalar computes dst = a / b.
func DivScalar[T Float](dst, a []T, b T) { runScalar(&divScalar, dst, a, b) }

// ScalarDiv computes dst = a / b.
func ScalarDiv[T Float](dst []T, a T, b []T) { runScalar(&scalarDiv, dst, b, a) }

// MaxScalar computes dst = max(a, b).
func MaxScalar[T Float](dst, a []T, b T) { runScalar(&maxScalar, dst, a, b) }

// MinScalar computes dst = min(a, b).
func MinScalar[T Float](dst, a []T, b T) { runScalar(&minScalar, dst, a, b) }
