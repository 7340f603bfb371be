package graph

import (
	"math/bits"
	"slices"

	"github.com/weft-ml/weft/tensor"
)

// forwarding holds the operations whose first output has the value of their first input.
var forwarding = map[string]bool{"Identity": true, "StopGradient": true, "PreventGradient": true, "Snapshot": true, "EnsureShape": true}

// A valueRule computes the integers of an output from those of the inputs of its node. It returns
// nil if the value is unknown.
type valueRule func(e *evaluator, o Output) *numbers

// ruleOf returns the rule of an operation; nil if it has none.
func ruleOf(op string) valueRule {
	switch op {
	case "Const":
		return func(_ *evaluator, o Output) *numbers { return fromTensor(o.Node.Attrs.Tensor("value")) }
	case "Cast":
		return sameNumbers
	case "Shape", "ShapeN":
		return shapeOfInput
	case "VariableShape":
		return shapeOfVariable
	case "Rank":
		return rankOfInput
	case "Size":
		return sizeOfInput
	case "Prod":
		return reduction(1, mul)
	case "Sum":
		return reduction(0, add)
	case "Max":
		return reduction(unknownNumber, maximum)
	case "Min":
		return reduction(unknownNumber, minimum)
	}
	if forwarding[op] {
		return sameNumbers
	}
	if rule := vectorRule(op); rule != nil {
		return rule
	}
	return arithmeticRule(op)
}

func vectorRule(op string) valueRule {
	switch op {
	case "Pack":
		return packScalars
	case "Concat", "ConcatV2":
		return concatVectors
	case "Slice":
		return sliceVector
	case "StridedSlice":
		return stridedSliceVector
	case "Gather", "GatherV2":
		return gatherVector
	case "Fill":
		return fillVector
	case "Reshape":
		return reshapeNumbers
	case "ExpandDims":
		return expandScalar
	case "Squeeze":
		return squeezeVector
	case "Range":
		return rangeVector
	}
	return nil
}

func arithmeticRule(op string) valueRule {
	switch op {
	case "Add", "AddV2":
		return elementwise(add)
	case "Sub":
		return elementwise(sub)
	case "Mul":
		return elementwise(mul)
	case "FloorDiv":
		return elementwise(floorDiv)
	case "FloorMod":
		return elementwise(floorMod)
	case "Maximum":
		return elementwise(maximum)
	case "Minimum":
		return elementwise(minimum)
	}
	return nil
}

func sameNumbers(e *evaluator, o Output) *numbers { return e.input(o, 0) }

func scalarOf(x int64) *numbers { return &numbers{scalar: true, vals: []int64{x}} }

func (e *evaluator) input(o Output, i int) *numbers {
	if i >= len(o.Node.in) {
		return nil
	}
	return e.numbers(o.Node.in[i])
}

// scalar returns the value of scalar input i, and whether it is known.
func (e *evaluator) scalar(o Output, i int) (int64, bool) {
	v := e.input(o, i)
	if v == nil || !v.scalar || v.vals[0] == unknownNumber {
		return 0, false
	}
	return v.vals[0], true
}

// vector returns vector input i, and whether its length is known. Elements may be unknownNumber.
func (e *evaluator) vector(o Output, i int) ([]int64, bool) {
	if v := e.input(o, i); v != nil {
		return v.vals, !v.scalar
	}
	if i >= len(o.Node.in) {
		return nil, false
	}
	s := e.shapes.Of(o.Node.in[i])
	if s.Rank() != 1 || s.Dim(0) < 0 || s.Dim(0) > maxNumbers {
		return nil, false
	}
	return slices.Repeat([]int64{unknownNumber}, int(s.Dim(0))), true
}

func sizes(s tensor.PartialShape) *numbers {
	if !s.RankKnown() {
		return nil
	}
	dims := s.Dims()
	for i := range dims {
		if dims[i] < 0 {
			dims[i] = unknownNumber
		}
	}
	return &numbers{vals: dims}
}

func shapeOfInput(e *evaluator, o Output) *numbers {
	if o.Index >= len(o.Node.in) {
		return nil
	}
	return sizes(e.shapes.Of(o.Node.in[o.Index]))
}

func shapeOfVariable(e *evaluator, o Output) *numbers {
	if elems := e.shapes.HandlesOf(o.Node.in[0]); len(elems) > 0 {
		return sizes(elems[0].Shape)
	}
	return nil
}

func rankOfInput(e *evaluator, o Output) *numbers {
	if r := e.shapes.Of(o.Node.in[0]).Rank(); r >= 0 {
		return scalarOf(int64(r))
	}
	return nil
}

func sizeOfInput(e *evaluator, o Output) *numbers {
	if shape, ok := e.shapes.Of(o.Node.in[0]).Full(); ok && shape.Check() == nil {
		return scalarOf(shape.NumElements())
	}
	return nil
}

// elementwise returns the rule of an operation on two scalars or vectors. f returns false if there
// is no result.
func elementwise(f func(a, b int64) (int64, bool)) valueRule {
	return func(e *evaluator, o Output) *numbers {
		a, b := e.input(o, 0), e.input(o, 1)
		if a == nil || b == nil || len(a.vals) != len(b.vals) && len(a.vals) != 1 && len(b.vals) != 1 {
			return nil
		}
		n := max(len(a.vals), len(b.vals))
		if len(a.vals) == 0 || len(b.vals) == 0 {
			n = 0
		}
		out := &numbers{scalar: a.scalar && b.scalar, vals: make([]int64, n)}
		for i := range out.vals {
			x, y := a.vals[i%len(a.vals)], b.vals[i%len(b.vals)]
			out.vals[i] = apply(f, x, y)
		}
		return out
	}
}

func apply(f func(a, b int64) (int64, bool), x, y int64) int64 {
	if x == unknownNumber || y == unknownNumber {
		return unknownNumber
	}
	if z, ok := f(x, y); ok {
		return z
	}
	return unknownNumber
}

// reduction returns the rule of an operation that reduces a vector to a scalar. The initial value
// is start, or the first element if start is unknownNumber.
func reduction(start int64, f func(a, b int64) (int64, bool)) valueRule {
	return func(e *evaluator, o Output) *numbers {
		v, ok := e.vector(o, 0)
		axes := e.input(o, 1)
		if !ok || axes == nil || len(axes.vals) != 1 || axes.vals[0] != 0 && axes.vals[0] != -1 {
			return nil
		}
		total := start
		for i, x := range v {
			if i == 0 && start == unknownNumber {
				total = x
				continue
			}
			total = apply(f, total, x)
		}
		return &numbers{scalar: !o.Node.Attrs.Bool("keep_dims"), vals: []int64{total}}
	}
}

func add(a, b int64) (int64, bool) {
	c := a + b
	return c, (c > a) == (b > 0)
}

func sub(a, b int64) (int64, bool) {
	c := a - b
	return c, (c < a) == (b > 0)
}

func mul(a, b int64) (int64, bool) {
	hi, lo := bits.Mul64(magnitude(a), magnitude(b))
	return a * b, hi == 0 && lo < 1<<63
}

func magnitude(a int64) uint64 {
	if a < 0 {
		return -uint64(a)
	}
	return uint64(a)
}

func floorDiv(a, b int64) (int64, bool) {
	if b == 0 {
		return 0, false
	}
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q, true
}

func floorMod(a, b int64) (int64, bool) {
	if b == 0 {
		return 0, false
	}
	m := a % b
	if m != 0 && (m < 0) != (b < 0) {
		m += b
	}
	return m, true
}

func maximum(a, b int64) (int64, bool) { return max(a, b), true }

func minimum(a, b int64) (int64, bool) { return min(a, b), true }
