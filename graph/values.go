package graph

import (
	"math"
	"slices"

	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Limits of what is computed to know shapes before the graph runs.
const (
	maxNumbers   = 4096 // elements of an integer tensor
	maxEvalDepth = 200  // nodes behind each other
)

// numbers are the elements of a scalar or vector of integers; unknown ones are unknownNumber.
type numbers struct {
	scalar bool
	vals   []int64
}

const unknownNumber = math.MinInt64

func (v *numbers) complete() bool { return !slices.Contains(v.vals, unknownNumber) }

// evaluator computes the integers that shapes depend on. It remembers what it has computed.
type evaluator struct {
	shapes *Shapes
	depth  int
}

func (s *Shapes) evaluator() *evaluator { return &evaluator{shapes: s} }

// tensor returns the value of an output, nil if it is not known.
func (e *evaluator) tensor(o Output) *tensor.Tensor {
	for range maxEvalDepth {
		if o.Node == nil {
			return nil
		}
		if o.Node.Op.Name == "Const" {
			return o.Node.Attrs.Tensor("value")
		}
		if !passesOn[o.Node.Op.Name] {
			break
		}
		o = o.Node.in[0]
	}
	v := e.numbers(o)
	if v == nil || !v.complete() {
		return nil
	}
	return v.tensor(o.DType().Base())
}

// tensor returns the numbers as a tensor of an integer type, nil if they are too large for it.
func (v *numbers) tensor(dtype tensor.DType) *tensor.Tensor {
	shape := tensor.Shape{int64(len(v.vals))}
	if v.scalar {
		shape = tensor.Shape{}
	}
	var t tensor.Tensor
	var err error
	switch dtype {
	case tensor.Int64:
		t, err = tensor.FromSlice(shape, v.vals)
	case tensor.Int32:
		small := make([]int32, len(v.vals))
		for i, x := range v.vals {
			small[i] = int32(x)
		}
		t, err = tensor.FromSlice(shape, small)
	default:
		return nil
	}
	if err != nil {
		return nil
	}
	return &t
}

// shape returns the shape that an output, a vector of sizes or the scalar -1 for an unknown shape,
// stands for.
func (e *evaluator) shape(o Output) (tensor.PartialShape, error) {
	v := e.numbers(o)
	if v == nil {
		if s := e.shapes.Of(o); s.Rank() == 1 && s.Dim(0) >= 0 && s.Dim(0) <= tensor.MaxRank {
			return tensor.UnknownDims(int(s.Dim(0))), nil
		}
		return tensor.PartialShape{}, nil
	}
	if v.scalar || len(v.vals) > tensor.MaxRank {
		return tensor.PartialShape{}, nil
	}
	dims := make([]int64, len(v.vals))
	for i, x := range v.vals {
		switch {
		case x == unknownNumber:
			x = tensor.UnknownDim
		case x < tensor.UnknownDim:
			return tensor.PartialShape{}, status.InvalidArgumentf("Invalid value in tensor used for shape: %d", x)
		}
		dims[i] = x
	}
	return tensor.MakePartial(dims...), nil
}

// numbers returns the integers of an output as far as they are known, nil if nothing is.
func (e *evaluator) numbers(o Output) *numbers {
	if o.Node == nil {
		return nil
	}
	if v, known := e.shapes.values[o]; known {
		return v
	}
	if e.depth >= maxEvalDepth {
		return nil
	}
	e.depth++
	v := e.compute(o)
	e.depth--
	e.shapes.values[o] = v
	return v
}

func (e *evaluator) compute(o Output) *numbers {
	dtype := o.DType()
	if dtype != tensor.Int32 && dtype != tensor.Int64 {
		return nil
	}
	rule := ruleOf(o.Node.Op.Name)
	if rule == nil {
		return nil
	}
	v := rule(e, o)
	if v == nil || len(v.vals) > maxNumbers {
		return nil
	}
	if dtype == tensor.Int32 {
		for _, x := range v.vals {
			if x != int64(int32(x)) && x != unknownNumber {
				return nil
			}
		}
	}
	return v
}

// fromTensor returns the elements of an integer scalar or vector.
func fromTensor(t *tensor.Tensor) *numbers {
	if t == nil || t.Rank() > 1 || t.NumElements() > maxNumbers {
		return nil
	}
	vals := opdef.IntValues(t)
	if vals == nil && t.NumElements() > 0 || slices.Contains(vals, unknownNumber) {
		return nil
	}
	return &numbers{scalar: t.Rank() == 0, vals: vals}
}
