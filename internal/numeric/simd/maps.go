package simd

// Maps of one slice.

// Neg: dst = -src.
func Neg[T Float](dst, src []T) { runUnary(&neg, dst, src) }

// Abs: dst = |src|.
func Abs[T Float](dst, src []T) { runUnary(&abs, dst, src) }

// Square: dst = src².
func Square[T Float](dst, src []T) { runUnary(&square, dst, src) }

// Sqrt: dst = √src.
func Sqrt[T Float](dst, src []T) { runUnary(&sqrt, dst, src) }

// Rsqrt: dst = 1/√src.
func Rsqrt[T Float](dst, src []T) { runUnary(&rsqrt, dst, src) }

// Reciprocal: dst = 1/src.
func Reciprocal[T Float](dst, src []T) { runUnary(&reciprocal, dst, src) }

// Relu: dst = max(src, 0).
func Relu[T Float](dst, src []T) { runUnary(&relu, dst, src) }

// Exp: dst = e^src.
func Exp[T Float](dst, src []T) { runUnary(&exp, dst, src) }

// Log: dst = ln src.
func Log[T Float](dst, src []T) { runUnary(&log, dst, src) }

// Tanh: dst = tanh src.
func Tanh[T Float](dst, src []T) { runUnary(&tanh, dst, src) }

// Sigmoid: dst = 1/(1 + e^-src).
func Sigmoid[T Float](dst, src []T) { runUnary(&sigmoid, dst, src) }

// Log1p: dst = ln(1 + src).
func Log1p[T Float](dst, src []T) { runUnary(&log1p, dst, src) }

// Expm1: dst = e^src - 1.
func Expm1[T Float](dst, src []T) { runUnary(&expm1, dst, src) }

// Erf: dst = the error function of src.
func Erf[T Float](dst, src []T) { runUnary(&erf, dst, src) }

// Sin: dst = sin src.
func Sin[T Float](dst, src []T) { runNear(&sin, dst, src) }

// Cos: dst = cos src.
func Cos[T Float](dst, src []T) { runNear(&cos, dst, src) }

// farAway is the largest argument of the trigonometric functions that the assembly takes.
const farAway = 1 << 20

// runNear is runUnary for functions whose assembly is only for arguments near zero.
func runNear[T Float](k *unaryPair, dst, src []T) {
	for lo := 0; lo < len(dst); lo += piece {
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

// Floor: dst = ⌊src⌋.
func Floor[T Float](dst, src []T) { runUnary(&floor, dst, src) }

// Ceil: dst = ⌈src⌉.
func Ceil[T Float](dst, src []T) { runUnary(&ceil, dst, src) }

// Rint: dst = the integer nearest to src, ties to even.
func Rint[T Float](dst, src []T) { runUnary(&rint, dst, src) }

// Sign: dst = -1, 0 or 1 by the sign of src.
func Sign[T Float](dst, src []T) { runUnary(&sign, dst, src) }

// Maps of two slices.

// Add: dst = a + b.
func Add[T Float](dst, a, b []T) { runBinary(&add, dst, a, b) }

// Sub: dst = a - b.
func Sub[T Float](dst, a, b []T) { runBinary(&sub, dst, a, b) }

// Mul: dst = a * b.
func Mul[T Float](dst, a, b []T) { runBinary(&mul, dst, a, b) }

// Div: dst = a / b.
func Div[T Float](dst, a, b []T) { runBinary(&div, dst, a, b) }

// Max: dst = max(a, b).
func Max[T Float](dst, a, b []T) { runBinary(&maximum, dst, a, b) }

// Min: dst = min(a, b).
func Min[T Float](dst, a, b []T) { runBinary(&minimum, dst, a, b) }

// SquaredDifference: dst = (a - b)².
func SquaredDifference[T Float](dst, a, b []T) { runBinary(&squaredDifference, dst, a, b) }

// ReluGrad: dst = grad where x > 0, and 0*grad elsewhere; x is the input or the output of Relu.
func ReluGrad[T Float](dst, grad, x []T) { runBinary(&reluGrad, dst, grad, x) }

// TanhGrad: dst = grad * (1 - y²) for y = tanh x.
func TanhGrad[T Float](dst, grad, y []T) { runBinary(&tanhGrad, dst, grad, y) }

// SigmoidGrad: dst = grad * (1 - y) * y for y = sigmoid x.
func SigmoidGrad[T Float](dst, grad, y []T) { runBinary(&sigmoidGrad, dst, grad, y) }

// DivNoNaN: dst = a / b, or 0 where b is.
func DivNoNaN[T Float](dst, a, b []T) { runBinary(&divNoNaN, dst, a, b) }

// MulNoNaN: dst = a * b, or 0 where b is.
func MulNoNaN[T Float](dst, a, b []T) { runBinary(&mulNoNaN, dst, a, b) }

// Pow: dst = a to the power of b.
func Pow[T Float](dst, a, b []T) { runBinary(&pow, dst, a, b) }

// Maps of a slice and a number.

// AddScalar: dst = a + b.
func AddScalar[T Float](dst, a []T, b T) { runScalar(&addScalar, dst, a, b) }

// SubScalar: dst = a - b.
func SubScalar[T Float](dst, a []T, b T) { runScalar(&addScalar, dst, a, -b) }

// ScalarSub: dst = a - b.
func ScalarSub[T Float](dst []T, a T, b []T) { runScalar(&scalarSub, dst, b, a) }

// MulScalar: dst = a * b.
func MulScalar[T Float](dst, a []T, b T) { runScalar(&mulScalar, dst, a, b) }

// DivScalar: dst = a / b.
func DivScalar[T Float](dst, a []T, b T) { runScalar(&divScalar, dst, a, b) }

// ScalarDiv: dst = a / b.
func ScalarDiv[T Float](dst []T, a T, b []T) { runScalar(&scalarDiv, dst, b, a) }

// MaxScalar: dst = max(a, b).
func MaxScalar[T Float](dst, a []T, b T) { runScalar(&maxScalar, dst, a, b) }

// MinScalar: dst = min(a, b).
func MinScalar[T Float](dst, a []T, b T) { runScalar(&minScalar, dst, a, b) }
