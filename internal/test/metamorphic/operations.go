package metamorphic

import (
	"cmp"
	"math"
	"strconv"

	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// operation is an operation on values. All are exact, so every implementation must compute the same
// bits.
type operation struct {
	arity  int
	result func(in []Type) (Type, bool)
	eval   func(in []tensor.Tensor, out Type) tensor.Tensor
	// build adds the nodes; nil for one node of operation node with attribute T.
	build func(s *scope, at *Stmt, in []ref, types []Type) ref
	node  string
}

// Constants of operations.
const (
	modulus = 7 // of Mod
	maxText = 6 // of Join: longer results are truncated
)

var operations = map[string]operation{
	"Add": arithmetic("AddV2", func(x, y int32) int32 { return x + y }, func(x, y int64) int64 { return x + y },
		func(x, y float32) float32 { return x + y }, func(x, y float64) float64 { return x + y }),
	"Sub": arithmetic("Sub", func(x, y int32) int32 { return x - y }, func(x, y int64) int64 { return x - y },
		func(x, y float32) float32 { return x - y }, func(x, y float64) float64 { return x - y }),
	"Mul": arithmetic("Mul", func(x, y int32) int32 { return x * y }, func(x, y int64) int64 { return x * y },
		func(x, y float32) float32 { return x * y }, func(x, y float64) float64 { return x * y }),
	"Maximum": arithmetic("Maximum", func(x, y int32) int32 { return max(x, y) }, func(x, y int64) int64 { return max(x, y) }, nil, nil),
	"Minimum": arithmetic("Minimum", func(x, y int32) int32 { return min(x, y) }, func(x, y int64) int64 { return min(x, y) }, nil, nil),
	"Neg": unary("Neg", func(x int32) int32 { return -x }, func(x int64) int64 { return -x },
		func(x float32) float32 { return -x }, func(x float64) float64 { return -x }),
	"Abs": unary("Abs", func(x int32) int32 { return max(x, -x) }, func(x int64) int64 { return max(x, -x) },
		func(x float32) float32 { return float32(math.Abs(float64(x))) }, math.Abs),
	"Mod":      {arity: 1, result: integers, eval: evalMod, build: buildMod},
	"Less":     {arity: 2, result: comparison(Type.isNumber), eval: evalLess, node: "Less"},
	"Equal":    {arity: 2, result: comparison(func(Type) bool { return true }), eval: evalEqual, node: "Equal"},
	"And":      logical("LogicalAnd", func(x, y bool) bool { return x && y }),
	"Or":       logical("LogicalOr", func(x, y bool) bool { return x || y }),
	"Not":      {arity: 1, result: same(isBool), eval: evalNot, build: buildPlain("LogicalNot")},
	"Select":   {arity: 3, result: resultSelect, eval: evalSelect, build: buildSelect},
	"ToInt32":  cast(tensor.Int32),
	"ToInt64":  cast(tensor.Int64),
	"ToFloat":  cast(tensor.Float32),
	"ToDouble": cast(tensor.Float64),
	"Join":     {arity: 2, result: resultJoin, eval: evalJoin, build: buildJoin},
	"Text":     {arity: 1, result: resultText, eval: evalText, node: "AsString"},
	"Sum":      {arity: 1, result: resultSum, eval: evalSum, build: buildSum},
	"Stack":    {arity: 2, result: resultStack, eval: evalStack, build: buildStack},
	"Row":      {arity: 1, result: resultRow, eval: evalRow, build: buildRow},
	"Reverse":  {arity: 1, result: resultReverse, eval: evalReverse, build: buildReverse},
	"Spread":   {arity: 1, result: resultSpread, eval: evalSpread, build: buildSpread},
}

func isBool(t Type) bool   { return t.DType == tensor.Bool }
func isString(t Type) bool { return t.DType == tensor.String }

func integers(in []Type) (Type, bool) { return in[0], in[0].DType.IsInteger() }

func same(ok func(Type) bool) func([]Type) (Type, bool) {
	return func(in []Type) (Type, bool) { return in[0], ok(in[0]) }
}

// broadcast returns the larger of two shapes. The smaller one must broadcast to it.
func broadcast(x, y string) string {
	if len(shapes[x]) > len(shapes[y]) {
		return x
	}
	return y
}

// index returns the value for element i of a result. Shapes have no dimensions of size 1, so a
// smaller value is repeated as a whole.
func index[T any](vals []T, i int) T { return vals[i%len(vals)] }

func fromSlice[T tensor.Elem](shape string, vals []T) tensor.Tensor {
	t, err := tensor.FromSlice(shapes[shape], vals)
	if err != nil {
		panic(err) // the number of elements follows from the type
	}
	return t
}

func size(t Type) int { return int(t.shape().NumElements()) }

func zip[T, R tensor.Elem](in []tensor.Tensor, out Type, f func(x, y T) R) tensor.Tensor {
	x, y := tensor.Values[T](&in[0]), tensor.Values[T](&in[1])
	vals := make([]R, size(out))
	for i := range vals {
		vals[i] = f(index(x, i), index(y, i))
	}
	return fromSlice(out.Shape, vals)
}

func apply[T, R tensor.Elem](in *tensor.Tensor, f func(T) R) tensor.Tensor {
	x := tensor.Values[T](in)
	vals := make([]R, len(x))
	for i := range vals {
		vals[i] = f(x[i])
	}
	return fromSlice(in.Shape().String(), vals)
}

// arithmetic returns an operation on two numbers of one type. Without a function for other types,
// it is defined for integers only.
func arithmetic(node string, i32 func(x, y int32) int32, i64 func(x, y int64) int64, f32 func(x, y float32) float32,
	f64 func(x, y float64) float64,
) operation {
	return operation{arity: 2, node: node, result: func(in []Type) (Type, bool) {
		ok := in[0].DType == in[1].DType && in[0].isNumber() && (f32 != nil || in[0].DType.IsInteger())
		return Type{in[0].DType, broadcast(in[0].Shape, in[1].Shape)}, ok
	}, eval: func(in []tensor.Tensor, out Type) tensor.Tensor {
		switch out.DType {
		case tensor.Int32:
			return zip(in, out, i32)
		case tensor.Int64:
			return zip(in, out, i64)
		case tensor.Float32:
			return zip(in, out, f32)
		default:
			return zip(in, out, f64)
		}
	}}
}

func unary(node string, i32 func(int32) int32, i64 func(int64) int64, f32 func(float32) float32, f64 func(float64) float64) operation {
	return operation{arity: 1, node: node, result: same(Type.isNumber), eval: func(in []tensor.Tensor, out Type) tensor.Tensor {
		switch out.DType {
		case tensor.Int32:
			return apply(&in[0], i32)
		case tensor.Int64:
			return apply(&in[0], i64)
		case tensor.Float32:
			return apply(&in[0], f32)
		default:
			return apply(&in[0], f64)
		}
	}}
}

func logical(node string, f func(x, y bool) bool) operation {
	return operation{arity: 2, result: func(in []Type) (Type, bool) {
		return Type{tensor.Bool, broadcast(in[0].Shape, in[1].Shape)}, isBool(in[0]) && isBool(in[1])
	}, eval: func(in []tensor.Tensor, out Type) tensor.Tensor { return zip(in, out, f) }, build: buildPlain(node)}
}

func comparison(ok func(Type) bool) func([]Type) (Type, bool) {
	return func(in []Type) (Type, bool) {
		return Type{tensor.Bool, broadcast(in[0].Shape, in[1].Shape)}, in[0].DType == in[1].DType && ok(in[0])
	}
}

func evalLess(in []tensor.Tensor, out Type) tensor.Tensor {
	switch in[0].DType() {
	case tensor.Int32:
		return zip(in, out, cmp.Less[int32])
	case tensor.Int64:
		return zip(in, out, cmp.Less[int64])
	case tensor.Float32:
		return zip(in, out, func(x, y float32) bool { return x < y })
	default:
		return zip(in, out, func(x, y float64) bool { return x < y })
	}
}

func equal[T comparable](x, y T) bool { return x == y }

func evalEqual(in []tensor.Tensor, out Type) tensor.Tensor {
	switch in[0].DType() {
	case tensor.Int32:
		return zip(in, out, equal[int32])
	case tensor.Int64:
		return zip(in, out, equal[int64])
	case tensor.Float32:
		return zip(in, out, equal[float32])
	case tensor.Float64:
		return zip(in, out, equal[float64])
	case tensor.Bool:
		return zip(in, out, equal[bool])
	default:
		return zip(in, out, equal[string])
	}
}

func evalNot(in []tensor.Tensor, _ Type) tensor.Tensor {
	return apply(&in[0], func(x bool) bool { return !x })
}

func evalMod(in []tensor.Tensor, _ Type) tensor.Tensor {
	if in[0].DType() == tensor.Int32 {
		return apply(&in[0], func(x int32) int32 { return (x%modulus + modulus) % modulus })
	}
	return apply(&in[0], func(x int64) int64 { return (x%modulus + modulus) % modulus })
}

func buildMod(s *scope, at *Stmt, in []ref, types []Type) ref {
	c := s.constant(castOf(tensor.Scalar[int32](modulus), types[0].DType))
	return s.op(at, "FloorMod", opdef.Attrs{"T": types[0].DType}, in[0], c)
}

// buildPlain builds a node of an operation that has no attribute for its type.
func buildPlain(node string) func(*scope, *Stmt, []ref, []Type) ref {
	return func(s *scope, at *Stmt, in []ref, _ []Type) ref { return s.op(at, node, nil, in...) }
}

func evalText(in []tensor.Tensor, _ Type) tensor.Tensor {
	if in[0].DType() == tensor.Int32 {
		return apply(&in[0], func(x int32) string { return strconv.Itoa(int(x)) })
	}
	return apply(&in[0], func(x int64) string { return strconv.FormatInt(x, 10) })
}

func resultText(in []Type) (Type, bool) {
	return Type{tensor.String, in[0].Shape}, in[0].DType.IsInteger()
}

func resultJoin(in []Type) (Type, bool) {
	return in[0], isString(in[0]) && in[0] == in[1]
}

func evalJoin(in []tensor.Tensor, out Type) tensor.Tensor {
	return zip(in, out, func(x, y string) string { return (x + y)[:min(len(x)+len(y), maxText)] })
}

func buildJoin(s *scope, at *Stmt, in []ref, _ []Type) ref {
	joined := s.op(at, "StringJoin", opdef.Attrs{"N": int64(2)}, in...)
	zero, length := s.constant(tensor.Scalar[int32](0)), s.constant(tensor.Scalar[int32](maxText))
	return s.op(at, "Substr", opdef.Attrs{"T": tensor.Int32}, joined, zero, length)
}
