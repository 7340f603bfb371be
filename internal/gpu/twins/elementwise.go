package twins

import (
	"slices"
	"strings"

	"github.com/weft-ml/weft/internal/gpu/hostgpu"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// Sets of element types, as in package source.
var (
	floatNames  = []string{"f16", "bf16", "f32", "f64"}
	signedNames = []string{"i8", "i16", "i32", "i64"}
	intNames    = append([]string{"u8", "u16", "u32", "u64"}, signedNames...)
	realNames   = append(append([]string{}, floatNames...), intNames...)
	complexes   = []string{"c64", "c128"}
)

// unaries are the kernels of unary.cl by the operations that compute the same on the CPU.
var unaries = map[string]string{
	"neg": "Neg", "abs": "Abs", "sign": "Sign", "square": "Square", "sqrt": "Sqrt", "rsqrt": "Rsqrt", "inv": "Inv", "exp": "Exp",
	"expm1": "Expm1", "log": "Log", "log1p": "Log1p", "sin": "Sin", "cos": "Cos", "tan": "Tan", "asin": "Asin", "acos": "Acos",
	"atan": "Atan", "sinh": "Sinh", "cosh": "Cosh", "tanh": "Tanh", "asinh": "Asinh", "acosh": "Acosh", "atanh": "Atanh",
	"erf": "Erf", "erfc": "Erfc", "lgamma": "Lgamma", "floor": "Floor", "ceil": "Ceil", "rint": "Rint", "sigmoid": "Sigmoid",
	"relu": "Relu", "relu6": "Relu6", "elu": "Elu", "selu": "Selu", "softplus": "Softplus", "softsign": "Softsign",
	"digamma": "Digamma", "besseli0": "BesselI0", "besseli0e": "BesselI0e", "besseli1": "BesselI1", "besseli1e": "BesselI1e",
	"besselk0": "BesselK0", "besselk0e": "BesselK0e", "besselk1": "BesselK1", "besselk1e": "BesselK1e", "dawsn": "Dawsn",
	"erfinv": "Erfinv", "expint": "Expint", "ndtri": "Ndtri",
	"invert": "Invert", "conj": "Conj", "isnan": "IsNan", "isinf": "IsInf", "isfinite": "IsFinite", "popcount": "PopulationCount",
}

// binaries are the kernels of binary.cl by the operations that compute the same on the CPU.
var binaries = map[string]string{
	"add": "AddV2", "sub": "Sub", "mul": "Mul", "div": "Div", "divnonan": "DivNoNan", "mulnonan": "MulNoNan", "floordiv": "FloorDiv",
	"truncatediv": "TruncateDiv", "floormod": "FloorMod", "mod": "Mod", "max": "Maximum", "min": "Minimum", "pow": "Pow",
	"atan2": "Atan2", "squareddifference": "SquaredDifference", "xdivy": "Xdivy", "xlogy": "Xlogy", "xlog1py": "Xlog1py",
	"nextafter": "NextAfter", "and": "BitwiseAnd", "or": "BitwiseOr", "xor": "BitwiseXor", "leftshift": "LeftShift",
	"rightshift": "RightShift", "equal": "Equal", "notequal": "NotEqual", "less": "Less", "lessequal": "LessEqual",
	"greater": "Greater", "greaterequal": "GreaterEqual", "tanhgrad": "TanhGrad", "sigmoidgrad": "SigmoidGrad", "sqrtgrad": "SqrtGrad",
	"rsqrtgrad": "RsqrtGrad", "invgrad": "InvGrad", "relugrad": "ReluGrad", "relu6grad": "Relu6Grad", "elugrad": "EluGrad",
	"polygamma": "Polygamma", "zeta": "Zeta", "selugrad": "SeluGrad", "softplusgrad": "SoftplusGrad", "softsigngrad": "SoftsignGrad",
}

func init() {
	for name, op := range unaries {
		for t, dtype := range dtypes {
			register(name+"_"+t, unary(op, dtype, opdef.Attrs{"T": dtype}))
		}
	}
	register("not_b8", unary("LogicalNot", tensor.Bool, opdef.Attrs{}))
	for _, t := range floatNames {
		register("leaky_"+t, func(a *hostgpu.Args) {
			unary("LeakyRelu", dtypes[t], opdef.Attrs{"T": dtypes[t], "alpha": a.Float32(3)})(a)
		})
		register("leakygrad_"+t, func(a *hostgpu.Args) {
			x, y := view(a, 1, dtypes[t], a.Int(3)), view(a, 2, dtypes[t], a.Int(3))
			put(a, compute("LeakyReluGrad", opdef.Attrs{"T": dtypes[t], "alpha": a.Float32(4)}, x, y)[0])
		})
	}
	for _, t := range complexes {
		for name, op := range map[string]string{"real": "Real", "imag": "Imag", "abs": "ComplexAbs", "angle": "Angle"} {
			of := map[string]tensor.DType{"c64": tensor.Float32, "c128": tensor.Float64}[t]
			if name != "abs" {
				register(name+"_"+t, unary(op, dtypes[t], opdef.Attrs{"T": dtypes[t], "Tout": of}))
			}
		}
	}
	for name, op := range binaries {
		for t, dtype := range dtypes {
			pair(name+"_"+t, op, dtype, opdef.Attrs{"T": dtype})
		}
	}
	pair("logicaland_b8", "LogicalAnd", tensor.Bool, opdef.Attrs{})
	pair("logicalor_b8", "LogicalOr", tensor.Bool, opdef.Attrs{})
	for from, src := range dtypes {
		for to, dst := range dtypes {
			if from != to {
				register("cast_"+from+"_"+to, unary("Cast", src, opdef.Attrs{"SrcT": src, "DstT": dst}))
			}
		}
	}
	register("truncate_f32", unary("Cast", tensor.Float32, opdef.Attrs{"SrcT": tensor.Float32, "DstT": tensor.BFloat16, "Truncate": true}))
	for _, t := range realNames {
		register("clip_"+t, func(a *hostgpu.Args) { clip(a, dtypes[t]) })
	}
	register("complex_f32_c64", makeComplex[float32])
	register("complex_f64_c128", makeComplex[float64])
	selects[uint8]("u8")
	selects[uint16]("u16")
	selects[uint32]("u32")
	selects[uint64]("u64")
	selects[wide]("c128")
}

// unary returns the twin of a kernel with the arguments y, x, n.
func unary(op string, dtype tensor.DType, attrs opdef.Attrs) func(*hostgpu.Args) {
	return func(a *hostgpu.Args) {
		if op == "Abs" && dtype.IsComplex() {
			op, attrs = "ComplexAbs", opdef.Attrs{"T": dtype, "Tout": map[tensor.DType]tensor.DType{
				tensor.Complex64: tensor.Float32, tensor.Complex128: tensor.Float64,
			}[dtype]}
		}
		x := view(a, 1, dtype, a.Int(2))
		put(a, compute(op, attrs, x)[0])
	}
}

// pair registers the twins of a kernel of two operands and of its broadcasting form.
func pair(name, op string, dtype tensor.DType, attrs opdef.Attrs) {
	run := func(a *hostgpu.Args, at func(k int, i int64) int64) {
		n := a.Int(3)
		operands := [2]kernel.Value{}
		for k := range operands {
			operands[k] = pick(a, k+1, dtype, n, func(i int64) int64 { return at(k, i) })
		}
		if dtype.IsInteger() && op == "Pow" {
			power(a, dtype, operands)
			return
		}
		if dtype.IsInteger() && (strings.Contains(name, "div_") || strings.Contains(name, "mod_")) {
			divide(a, op, attrs, operands)
			return
		}
		put(a, compute(op, attrs, operands[:]...)[0])
	}
	register(name, func(a *hostgpu.Args) {
		strides := [2]int64{a.Int(4), a.Int(5)}
		run(a, func(k int, i int64) int64 { return i * strides[k] })
	})
	register(name+"_b", func(a *hostgpu.Args) {
		l := hostgpu.Struct[loop](a, 4)
		run(a, l.offset)
	})
}

// divide computes quotients or remainders of integers. Division by zero is an error on the CPU. On
// a device the quotient is -1, and the remainder is the dividend.
func divide(a *hostgpu.Args, op string, attrs opdef.Attrs, operands [2]kernel.Value) {
	x, y := &operands[0].Tensor, &operands[1].Tensor
	size, zeros, dividends := y.DType().Size(), []int{}, slices.Clone(x.Bytes())
	for i := range y.NumElements() {
		if b := y.Bytes()[i*size : (i+1)*size]; !slices.ContainsFunc(b, func(v byte) bool { return v != 0 }) {
			zeros = append(zeros, i)
			b[0] = 1
		}
	}
	put(a, compute(op, attrs, operands[:]...)[0])
	for _, i := range zeros {
		z := a.Bytes(0)[i*size : (i+1)*size]
		if copy(z, dividends[i*size:]); strings.HasSuffix(op, "Div") {
			for k := range z {
				z[k] = 0xff
			}
		}
	}
}

// power computes powers of integers. Negative exponents are an error on the CPU; on a device the
// result is 1/x^-y, rounded toward zero.
func power(a *hostgpu.Args, dtype tensor.DType, operands [2]kernel.Value) {
	for i := range operands {
		operands[i] = compute("Cast", opdef.Attrs{"SrcT": dtype, "DstT": tensor.Int64}, operands[i])[0]
	}
	x, y := tensor.Values[int64](&operands[0].Tensor), tensor.Values[int64](&operands[1].Tensor)
	for i, base := range x {
		e, r := y[i], int64(1)
		if e < 0 {
			switch base {
			case 1:
			case -1:
				e &= 1
			default:
				base, e = 0, 1
			}
		}
		for ; e > 0; e, base = e>>1, base*base {
			if e&1 != 0 {
				r *= base
			}
		}
		x[i] = r
	}
	put(a, compute("Cast", opdef.Attrs{"SrcT": tensor.Int64, "DstT": dtype}, operands[0])[0])
}

// pick returns n elements of argument i at the given offsets, as a vector.
func pick(a *hostgpu.Args, i int, dtype tensor.DType, n int64, at func(int64) int64) kernel.Value {
	t, err := tensor.Alloc(dtype, tensor.Shape{n})
	if err != nil {
		panic(err)
	}
	size, dst, src := int64(dtype.Size()), t.Bytes(), a.Bytes(i)
	for e := range n {
		copy(dst[e*size:(e+1)*size], src[at(e)*size:])
	}
	return kernel.Value{Tensor: t}
}

func clip(a *hostgpu.Args, dtype tensor.DType) {
	n := a.Int(4)
	x := view(a, 1, dtype, n)
	lo := pick(a, 2, dtype, n, func(i int64) int64 { return i * a.Int(5) })
	hi := pick(a, 3, dtype, n, func(i int64) int64 { return i * a.Int(6) })
	put(a, compute("ClipByValue", opdef.Attrs{"T": dtype}, x, lo, hi)[0])
}

func makeComplex[R float32 | float64](a *hostgpu.Args) {
	z, x, y := hostgpu.Slice[R](a, 0), hostgpu.Slice[R](a, 1), hostgpu.Slice[R](a, 2)
	for i := range a.Int(3) {
		z[2*i], z[2*i+1] = x[i], y[i]
	}
}

// selects registers the twins of selection for elements of a size.
func selects[T any](size string) {
	run := func(a *hostgpu.Args, at func(k int, i int64) int64) {
		z, c, x, y := hostgpu.Slice[T](a, 0), a.Bytes(1), hostgpu.Slice[T](a, 2), hostgpu.Slice[T](a, 3)
		for i := range a.Int(4) {
			if c[at(0, i)] != 0 {
				z[i] = x[at(1, i)]
			} else {
				z[i] = y[at(2, i)]
			}
		}
	}
	register("select_"+size, func(a *hostgpu.Args) {
		strides := [3]int64{a.Int(6), a.Int(7), a.Int(8)}
		run(a, func(k int, i int64) int64 {
			if k == 0 {
				i /= a.Int(5)
			}
			return i * strides[k]
		})
	})
	register("select_"+size+"_b", func(a *hostgpu.Args) {
		l := hostgpu.Struct[loop](a, 5)
		run(a, l.offset)
	})
}
