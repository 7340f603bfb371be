package cases

import (
	"encoding/binary"
	"math"
	"strings"

	"github.com/weft-ml/weft/internal/gpu/driver"
)

// makers make launches by the macro of a kernel.
var makers = map[string]func(m *maker){}

func init() {
	makers["UNARY"] = func(m *maker) { m.unary(m.t(0)) }
	makers["UNARYC"] = makers["UNARY"]
	makers["UNARYP"] = func(m *maker) { m.unary(m.t(0), float32(0.2)) }
	makers["PREDICATE"] = func(m *maker) { m.unary("b8") }
	makers["PART"] = func(m *maker) {
		m.unary(map[string]string{"popcount": "u8", "c64": "f32", "c128": "f64"}[pick(m.program.Name == "popcount", "popcount", m.t(0))])
	}
	makers["CAST"] = func(m *maker) { m.unary(m.t(1)) }
	makers["CASTC"], makers["CASTCC"] = makers["CAST"], makers["CAST"]
	makers["TRUNCATE"] = func(m *maker) { m.unary("bf16") }
	makers["COMPLEX"] = func(m *maker) {
		for _, n := range lengths {
			m.add(length(n), n, 0, out(m.t(1), n), m.values(m.t(0), n, 0), m.values(m.t(0), n, 1), n)
		}
	}
	makers["BINARY"] = func(m *maker) { m.binary(m.t(0)) }
	makers["BINARYC"] = makers["BINARY"]
	makers["COMPARE"] = func(m *maker) { m.binary("b8") }
	makers["BINARYP"] = func(m *maker) {
		for _, n := range lengths {
			m.add(length(n), n, 0, out(m.t(0), n), m.values(m.t(0), n, 0), m.values(m.t(0), n, 1), n, float32(0.2))
		}
	}
	makers["SELECT"] = (*maker).choose
	makers["CLIP"] = func(m *maker) {
		for _, n := range lengths {
			all, one := m.values(m.t(0), n, 0), numbers(m.t(0), 1, func(int) float64 { return 1 })
			m.add(length(n)+", bounds are scalars", n, 0, out(m.t(0), n), m.values(m.t(0), n, 1), one, one, n, int32(0), int32(0))
			m.add(length(n), n, 0, out(m.t(0), n), m.values(m.t(0), n, 1), one, all, n, int32(0), int32(1))
		}
	}
}

func pick[T any](cond bool, a, b T) T {
	if cond {
		return a
	}
	return b
}

// lengths are the numbers of elements of elementwise launches.
var lengths = []int64{1, 3001}

func length(n int64) string { return pick(n == 1, "one element", "3001 elements") }

// tolerances are the allowed differences in units of the last place. Kernels that are not listed
// have the CPU's bits. OpenCL allows its functions as much or more.
var tolerances = map[string]float64{
	"rsqrt": 2, "exp": 4, "expm1": 4, "log": 4, "log1p": 4, "sin": 4, "cos": 4, "tan": 5, "asin": 4, "acos": 4, "atan": 5, "sinh": 4,
	"cosh": 4, "tanh": 5, "asinh": 4, "acosh": 4, "atanh": 5, "erf": 16, "erfc": 16, "lgamma": 16, "sigmoid": 4, "elu": 4, "selu": 4,
	"softplus": 4, "pow": 16, "atan2": 6, "xlogy": 4, "xlog1py": 4, "softplusgrad": 4, "abs_c": 4, "angle": 6, "div_c": 4, "inv_c": 4,
	"divnonan_c": 4, "sqrtgrad": 2, "rsqrtgrad": 4, "invgrad": 2, "tanhgrad": 4, "sigmoidgrad": 4, "elugrad": 2, "selugrad": 2,
	"digamma": 64, "besseli0": 16, "besseli0e": 16, "besseli1": 16, "besseli1e": 16, "besselk0": 64, "besselk0e": 64, "besselk1": 64,
	"besselk1e": 64, "dawsn": 64, "erfinv": 16, "expint": 64, "ndtri": 16, "polygamma": 64, "zeta": 64,
	"softsigngrad": 2, "mul_c": 2, "mulnonan_c": 2, "square_c": 2, "squareddifference_c": 4, "xdivy": 0, "squareddifference": 0,
}

// cancellations are functions whose results may be small differences of large numbers. They are
// allowed a difference of some units of the last place of 1.
var cancellations = map[string]float64{"elu": 2, "selu": 4, "acos": 4, "tanhgrad": 16, "square_c": 16, "mul_c": 64, "div_c": 16, "inv_c": 4, "mulnonan_c": 64,
	"divnonan_c": 16, "squareddifference_c": 64}

// tolerance returns the allowed difference for the kernel.
func (m *maker) tolerance() float64 {
	name := m.program.Name
	if strings.HasPrefix(m.program.Types[0], "c") {
		name += "_c"
	}
	t := tolerances[name]
	if t == 0 && strings.HasSuffix(name, "_c") {
		t = tolerances[strings.TrimSuffix(name, "_c")]
	}
	return t
}

// domain returns the values of an operand for which a function is defined, and of moderate size.
func (m *maker) domain(operand int) func(i int) float64 {
	normal := func(int) float64 { return 3 * m.r.NormFloat64() }
	switch m.program.Name {
	case "sqrt", "rsqrt", "log", "besselk0", "besselk0e", "besselk1", "besselk1e", "expint":
		return func(int) float64 { return math.Exp(4 * m.r.NormFloat64()) }
	case "log1p":
		return func(int) float64 { return math.Exp(4*m.r.NormFloat64()) - 0.9 }
	case "asin", "acos", "atanh", "erfinv":
		return func(int) float64 { return 2*m.r.Float64() - 1 }
	case "ndtri": // not where the result is close to 0
		return func(i int) float64 { return 0.48*m.r.Float64() + float64(i%2)*0.52 }
	case "digamma", "zeta": // away from the zero, and from the pole at 1
		return func(int) float64 { return 2.5 + math.Abs(4*m.r.NormFloat64()) }
	case "polygamma":
		if operand == 0 {
			return func(int) float64 { return float64(m.r.IntN(5)) }
		}
		return func(int) float64 { return 2.5 + math.Abs(4*m.r.NormFloat64()) }
	case "acosh":
		return func(int) float64 { return 1 + math.Exp(2*m.r.NormFloat64()) }
	case "lgamma": // away from the zeros at 1 and 2
		return func(int) float64 { return 2.5 + math.Abs(4*m.r.NormFloat64()) }
	case "xlogy", "xlog1py":
		if operand == 1 {
			return func(int) float64 { return 2.5 + math.Abs(4*m.r.NormFloat64()) }
		}
	case "pow":
		if operand == 0 {
			return func(int) float64 { return math.Floor(4*m.r.Float64()) + 0.5 }
		}
		return func(int) float64 { return math.Floor(5 * m.r.Float64()) }
	case "tan":
		return func(int) float64 { return m.r.NormFloat64() / 2 }
	case "leftshift", "rightshift":
		if operand == 1 {
			return func(int) float64 { return float64(m.r.IntN(9)) }
		}
		return func(int) float64 { return float64(m.r.Int64()) }
	case "invert", "and", "or", "xor", "popcount":
		return func(int) float64 { return float64(m.r.Int64()) }
	case "floormod", "mod", "truncatediv", "floordiv":
		// Quotients that are not close to an integer, and operands whose quotient has no rounding.
		if operand == 1 {
			return func(int) float64 { return []float64{1, 2, 4, 8, -2, -4, 16}[m.r.IntN(7)] }
		}
		return func(int) float64 { return math.Floor(100*m.r.NormFloat64()) + 0.5 }
	case "cast", "truncate":
		return func(int) float64 { return 40 * m.r.NormFloat64() }
	case "nextafter", "equal", "notequal", "less", "lessequal", "greater", "greaterequal":
		return func(int) float64 { return float64(m.r.IntN(3)) }
	}
	return normal
}

// specials are values that come before the random ones of exact functions.
var specials = []float64{0, 1, -1, math.Inf(1), math.Inf(-1), math.NaN(), math.Copysign(0, -1), 6, 0.5, 2.5}

// values returns n values for an operand.
func (m *maker) values(t string, n int64, operand int) *Buffer {
	f := m.domain(operand)
	special := m.program.Family != "unary" && m.program.Family != "binary" || m.tolerance() > 0 || !isFloat(t)
	return numbers(t, n, func(i int) float64 {
		v := f(i)
		if k := i / pick(operand == 0, 1, len(specials)); !special && n > 1 && i < len(specials)*len(specials) {
			return specials[k%len(specials)]
		}
		if strings.HasPrefix(t, "u") {
			return math.Abs(v)
		}
		return v
	})
}

func (m *maker) unary(result string, more ...any) {
	for _, n := range lengths {
		m.add(length(n), n, m.tolerance(), append([]any{out(result, n), m.values(m.t(0), n, 0), n}, more...)...).Abs = m.absolute()
	}
}

// absolute returns the allowed absolute difference for the kernel.
func (m *maker) absolute() float64 {
	t, name := m.t(0), m.program.Name
	if strings.HasPrefix(t, "c") {
		t, name = map[string]string{"c64": "f32", "c128": "f64"}[t], name+"_c"
	}
	return math.Ldexp(cancellations[name], -formats[t].bits)
}

func (m *maker) binary(result string) {
	first := len(m.cases)
	defer func() {
		for i := range m.cases[first:] {
			m.cases[first+i].Abs = m.absolute()
		}
	}()
	if m.is("_b") {
		// 8 dimensions, in which one, the other or no operand repeats.
		shape := []int64{2, 3, 1, 2, 4, 3, 2, 5}
		x, y := []int64{2, 1, 1, 2, 4, 1, 2, 5}, []int64{2, 3, 1, 1, 4, 3, 2, 1}
		m.add("broadcast of 8 dimensions", 1440, m.tolerance(), out(result, 1440), m.values(m.t(0), size(x), 0), m.values(m.t(0), size(y), 1),
			int64(1440), Loop(shape, Strides(shape, x), Strides(shape, y)))
		shape, x, y = []int64{701, 33}, []int64{701, 33}, []int64{1, 33}
		m.add("rows", 701*33, m.tolerance(), out(result, 701*33), m.values(m.t(0), size(x), 0), m.values(m.t(0), size(y), 1),
			int64(701*33), Loop(shape, Strides(shape, x), Strides(shape, y)))
		return
	}
	for _, n := range lengths {
		m.add(length(n), n, m.tolerance(), out(result, n), m.values(m.t(0), n, 0), m.values(m.t(0), n, 1), n, int32(1), int32(1))
	}
	n := lengths[1]
	m.add("a scalar on the left", n, m.tolerance(), out(result, n), m.values(m.t(0), 1, 0), m.values(m.t(0), n, 1), n, int32(0), int32(1))
	m.add("a scalar on the right", n, m.tolerance(), out(result, n), m.values(m.t(0), n, 0), m.values(m.t(0), 1, 1), n, int32(1), int32(0))
	if name, t := m.program.Name, m.t(0); (name == "xlogy" || name == "xlog1py") && formats[t].bits < formats["f32"].bits {
		// The logarithm is rounded to the type before the product is. No logarithm of these is
		// close to the middle of two numbers.
		x, y := numbers(t, 64, func(i int) float64 { return 1.5 + float64(i%7)/4 }), numbers(t, 64, func(i int) float64 { return 2 + float64(i)/8 })
		m.add("rounded logarithms", 64, 0, out(t, 64), x, y, int64(64), int32(1), int32(1))
	}
}

func (m *maker) choose() {
	n := lengths[1]
	truth := func(n int64) *Buffer { return numbers("b8", n, func(int) float64 { return m.r.NormFloat64() }) }
	bytes := func(n int64) *Buffer { return m.random(m.t(0), n) }
	if m.is("_b") {
		shape, c, x, y := []int64{5, 7, 9, 2}, []int64{5, 1, 9, 1}, []int64{1, 7, 9, 2}, []int64{5, 7, 1, 1}
		m.add("broadcast", 630, 0, out(m.t(0), 630), truth(size(c)), bytes(size(x)), bytes(size(y)), int64(630),
			Loop(shape, Strides(shape, c), Strides(shape, x), Strides(shape, y)))
		return
	}
	m.add("all", n, 0, out(m.t(0), n), truth(n), bytes(n), bytes(n), n, int64(1), int32(1), int32(1), int32(1))
	m.add("rows", n, 0, out(m.t(0), n), truth(n/100+1), bytes(n), bytes(1), n, int64(100), int32(1), int32(1), int32(0))
	m.add("scalar condition", n, 0, out(m.t(0), n), truth(1), bytes(1), bytes(n), n, int64(1), int32(0), int32(0), int32(1))
}

// random returns n elements of random bytes.
func (m *maker) random(t string, n int64) *Buffer {
	b := &Buffer{Type: t, Data: make([]byte, int(n)*sizes[t])}
	for i := range b.Data {
		b.Data[i] = byte(m.r.Uint32())
	}
	return b
}

func size(shape []int64) int64 {
	n := int64(1)
	for _, d := range shape {
		n *= d
	}
	return n
}

// dims is the number of dimensions of a Loop in the kernels' source.
const dims = 12

// Loop returns the argument of kernels that traverse several dimensions: their sizes, and the
// strides of up to 4 operands in elements.
func Loop(shape []int64, strides ...[]int64) driver.Struct {
	b := make(driver.Struct, 8+4*dims+4*8*dims)
	binary.NativeEndian.PutUint32(b, uint32(len(shape)))
	for d, n := range shape {
		binary.NativeEndian.PutUint32(b[8+4*d:], uint32(n))
	}
	for k, s := range strides {
		for d, v := range s {
			binary.NativeEndian.PutUint64(b[8+4*dims+8*(k*dims+d):], uint64(v))
		}
	}
	return b
}

// Strides returns the strides of an operand that is broadcast to a shape of the same rank.
func Strides(shape, operand []int64) []int64 {
	out, step := make([]int64, len(shape)), int64(1)
	for d := len(shape) - 1; d >= 0; d-- {
		if operand[d] != 1 {
			out[d] = step
		}
		step *= operand[d]
	}
	return out
}
