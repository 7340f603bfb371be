package graph

import (
	"math"
	"slices"

	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Limits of the evaluation of integers before the graph runs. They bound its time and memory.
const (
	maxNumbers    = 4096    // elements of a vector
	maxEvalDepth  = 200     // length of a chain of nodes
	maxAllNumbers = 1 << 24 // elements of all vectors of a graph
)

// numbers are the elements of an integer scalar or vector. Unknown elements are unknownNumber.
type numbers struct {
	scalar bool
	vals   []int64
}

const unknownNumber = math.MinInt64

func (v *numbers) complete() bool { return !slices.Contains(v.vals, unknownNumber) }

// evaluator computes the integers on which shapes depend. Results are stored in Shapes.values.
type evaluator struct {
	shapes *Shapes
	depth  int
}

func (s *Shapes) evaluator() *evaluator { return &evaluator{shapes: s} }

// tensor returns the value of an output; nil if it is unknown.
func (e *evaluator) tensor(o Output) *tensor.Tensor {
	for range maxEvalDepth {
		if o.Node == nil {
			return nil
		}
		if o.Node.Op.Name == "Const" {
			return o.Node.Attrs.Tensor("value")
		}
		if !forwarding[o.Node.Op.Name] {
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

// tensor returns the numbers as a tensor of type int32 or int64; nil for other types.
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

// shape returns the shape that is the value of an output: a vector of sizes, or the scalar -1 for
// an unknown shape. Sizes less than -1 are an InvalidArgument error.
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

// numbers returns the integers of an output, as far as they are known; nil if none are.
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
	var v *numbers
	if e.shapes.numbers <= maxAllNumbers {
		v = e.compute(o)
	}
	if v != nil {
		e.shapes.numbers += len(v.vals)
	}
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

// fromTensor returns the elements of an integer scalar or vector; nil for other tensors.
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
