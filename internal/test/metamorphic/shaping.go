package metamorphic

import (
	"slices"

	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// each evaluates a function of the elements for the element type of a tensor.
func each(t *tensor.Tensor, shape string, f elements) tensor.Tensor {
	switch t.DType() {
	case tensor.Int32:
		return fromSlice(shape, pick(tensor.Values[int32](t), f))
	case tensor.Int64:
		return fromSlice(shape, pick(tensor.Values[int64](t), f))
	case tensor.Float32:
		return fromSlice(shape, pick(tensor.Values[float32](t), f))
	case tensor.Float64:
		return fromSlice(shape, pick(tensor.Values[float64](t), f))
	case tensor.Bool:
		return fromSlice(shape, pick(tensor.Values[bool](t), f))
	default:
		return fromSlice(shape, pick(tensor.Values[string](t), f))
	}
}

// elements are the indexes of the elements of a tensor that form a result.
type elements []int

func pick[T any](vals []T, from elements) []T {
	out := make([]T, len(from))
	for i, at := range from {
		out[i] = vals[at]
	}
	return out
}

func castOf(t tensor.Tensor, to tensor.DType) tensor.Tensor {
	switch t.DType() {
	case tensor.Int32:
		return castFrom[int32](&t, to)
	case tensor.Int64:
		return castFrom[int64](&t, to)
	case tensor.Float32:
		return castFrom[float32](&t, to)
	case tensor.Float64:
		return castFrom[float64](&t, to)
	default:
		as := apply(&t, func(x bool) int32 {
			if x {
				return 1
			}
			return 0
		})
		return castFrom[int32](&as, to)
	}
}

func castFrom[T int32 | int64 | float32 | float64](t *tensor.Tensor, to tensor.DType) tensor.Tensor {
	switch to {
	case tensor.Int32:
		return apply(t, func(x T) int32 { return int32(x) })
	case tensor.Int64:
		return apply(t, func(x T) int64 { return int64(x) })
	case tensor.Float32:
		return apply(t, func(x T) float32 { return float32(x) })
	default:
		return apply(t, func(x T) float64 { return float64(x) })
	}
}

// cast returns the conversion to a type. Fractions are not converted to integers, because the
// result for numbers out of range depends on the machine.
func cast(to tensor.DType) operation {
	return operation{arity: 1, result: func(in []Type) (Type, bool) {
		ok := !isString(in[0]) && in[0].DType != to && (to.IsFloating() || !in[0].DType.IsFloating())
		return Type{to, in[0].Shape}, ok
	}, eval: func(in []tensor.Tensor, _ Type) tensor.Tensor { return castOf(in[0], to) },
		build: func(s *scope, at *Stmt, in []ref, types []Type) ref {
			return s.op(at, "Cast", opdef.Attrs{"SrcT": types[0].DType, "DstT": to}, in[0])
		}}
}

func resultSelect(in []Type) (Type, bool) {
	shape := broadcast(in[0].Shape, broadcast(in[1].Shape, in[2].Shape))
	return Type{in[1].DType, shape}, isBool(in[0]) && in[1].DType == in[2].DType
}

func evalSelect(in []tensor.Tensor, out Type) tensor.Tensor {
	cond := tensor.Values[bool](&in[0])
	then, otherwise := spread(&in[1], out.Shape), spread(&in[2], out.Shape)
	both, from := concat(&then, &otherwise), make(elements, size(out))
	for i := range from {
		from[i] = i
		if !index(cond, i) {
			from[i] += size(out)
		}
	}
	return each(&both, out.Shape, from)
}

func buildSelect(s *scope, at *Stmt, in []ref, types []Type) ref {
	return s.op(at, "SelectV2", opdef.Attrs{"T": types[1].DType}, in...)
}

// spread returns a value broadcast to a shape.
func spread(t *tensor.Tensor, shape string) tensor.Tensor {
	from := make(elements, shapes[shape].NumElements())
	for i := range from {
		from[i] = i % t.NumElements()
	}
	return each(t, shape, from)
}

// concat returns the elements of x followed by those of y, which have the same type. The shape of
// the result is unspecified.
func concat(x, y *tensor.Tensor) tensor.Tensor {
	switch x.DType() {
	case tensor.Int32:
		return joined[int32](x, y)
	case tensor.Int64:
		return joined[int64](x, y)
	case tensor.Float32:
		return joined[float32](x, y)
	case tensor.Float64:
		return joined[float64](x, y)
	case tensor.Bool:
		return joined[bool](x, y)
	default:
		return joined[string](x, y)
	}
}

func joined[T tensor.Elem](x, y *tensor.Tensor) tensor.Tensor {
	return tensor.Vector(slices.Concat(tensor.Values[T](x), tensor.Values[T](y))...)
}

func resultSum(in []Type) (Type, bool) { return Type{in[0].DType, scalar}, in[0].DType.IsInteger() }

func evalSum(in []tensor.Tensor, _ Type) tensor.Tensor {
	if in[0].DType() == tensor.Int32 {
		return tensor.Scalar(total[int32](&in[0]))
	}
	return tensor.Scalar(total[int64](&in[0]))
}

func total[T int32 | int64](t *tensor.Tensor) T {
	var sum T
	for _, v := range tensor.Values[T](t) {
		sum += v
	}
	return sum
}

func buildSum(s *scope, at *Stmt, in []ref, types []Type) ref {
	axes := []int32{0, 1}[:len(types[0].shape())]
	c := s.constant(tensor.Vector(axes...))
	return s.op(at, "Sum", opdef.Attrs{"T": types[0].DType, "Tidx": tensor.Int32}, in[0], c)
}

func resultStack(in []Type) (Type, bool) {
	return Type{in[0].DType, matrix}, in[0].Shape == vector && in[0] == in[1]
}

func evalStack(in []tensor.Tensor, _ Type) tensor.Tensor {
	both := concat(&in[0], &in[1])
	return each(&both, matrix, elements{0, 1, 2, 3, 4, 5})
}

func buildStack(s *scope, at *Stmt, in []ref, types []Type) ref {
	return s.op(at, "Pack", opdef.Attrs{"T": types[0].DType, "N": int64(2)}, in...)
}

func resultRow(in []Type) (Type, bool) { return Type{in[0].DType, vector}, in[0].Shape == matrix }

// Row is the last row of a matrix.
func evalRow(in []tensor.Tensor, _ Type) tensor.Tensor {
	return each(&in[0], vector, elements{3, 4, 5})
}

func buildRow(s *scope, at *Stmt, in []ref, types []Type) ref {
	one, axis := s.constant(tensor.Scalar[int64](1)), s.constant(tensor.Scalar[int32](0))
	attrs := opdef.Attrs{"Tparams": types[0].DType, "Tindices": tensor.Int64, "Taxis": tensor.Int32}
	return s.op(at, "GatherV2", attrs, in[0], one, axis)
}

func resultReverse(in []Type) (Type, bool) { return in[0], in[0].Shape != scalar }

func evalReverse(in []tensor.Tensor, out Type) tensor.Tensor {
	if out.Shape == vector {
		return each(&in[0], vector, elements{2, 1, 0})
	}
	return each(&in[0], matrix, elements{3, 4, 5, 0, 1, 2})
}

func buildReverse(s *scope, at *Stmt, in []ref, types []Type) ref {
	c := s.constant(tensor.Vector[int32](0))
	return s.op(at, "ReverseV2", opdef.Attrs{"T": types[0].DType, "Tidx": tensor.Int32}, in[0], c)
}

func resultSpread(in []Type) (Type, bool) { return Type{in[0].DType, matrix}, in[0].Shape != matrix }

func evalSpread(in []tensor.Tensor, _ Type) tensor.Tensor { return spread(&in[0], matrix) }

func buildSpread(s *scope, at *Stmt, in []ref, types []Type) ref {
	c := s.constant(tensor.Vector[int32](2, 3))
	return s.op(at, "BroadcastTo", opdef.Attrs{"T": types[0].DType, "Tidx": tensor.Int32}, in[0], c)
}
