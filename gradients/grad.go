package gradients

import (
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Grad is the gradient with respect to one output. The zero Grad means that there is none: the
// differentiated values do not depend on the output.
type Grad struct {
	Dense  op.Output
	Slices *IndexedSlices
}

// IndexedSlices is a gradient that is zero except for some rows of a tensor of shape Shape. Row
// Indices[i] is Values[i]; rows that occur more than once add up.
type IndexedSlices struct {
	Values  op.Output // [n, …] elements
	Indices op.Output // [n] int32 or int64
	// vector with the shape of the dense gradient; the zero Output if it is not known
	Shape op.Output
}

// IsNone reports whether there is no gradient.
func (g Grad) IsNone() bool { return g.Dense.Node == nil && g.Slices == nil }

// values returns the elements of a gradient that is not none.
func (g Grad) values() op.Output {
	if g.Slices != nil {
		return g.Slices.Values
	}
	return g.Dense
}

// withValues returns a gradient of the same kind with other elements.
func (g Grad) withValues(v op.Output) Grad {
	if g.Slices == nil {
		return Of(v)
	}
	slices := *g.Slices
	slices.Values = v
	return Grad{Slices: &slices}
}

// Map returns the gradient with f applied to its elements: all elements of a dense gradient, the
// rows of a sparse one. None stays none.
func (g Grad) Map(f func(op.Output) op.Output) Grad {
	if g.IsNone() {
		return g
	}
	return g.withValues(f(g.values()))
}

// Of returns the dense gradient o.
func Of(o op.Output) Grad { return Grad{Dense: o} }

// List returns dense gradients; the zero Output stands for none.
func List(outs ...op.Output) []Grad {
	grads := make([]Grad, len(outs))
	for i, o := range outs {
		grads[i] = Of(o)
	}
	return grads
}

// Sum returns the sum of gradients. There must be at least one, and none of them may be none. The
// sum is sparse if all gradients are sparse.
func Sum(s *op.Scope, grads []Grad) Grad {
	if len(grads) == 1 {
		return grads[0]
	}
	values, indices, shape := make([]op.Output, len(grads)), make([]op.Output, len(grads)), op.Output{}
	for i, g := range grads {
		if g.Slices == nil {
			return sumDense(s, grads)
		}
		values[i], indices[i] = g.Slices.Values, g.Slices.Indices
		if shape.Node == nil {
			shape = g.Slices.Shape
		}
	}
	axis := op.Const(s, int32(0))
	return Grad{Slices: &IndexedSlices{
		Values: op.ConcatV2(s, values, axis), Indices: op.ConcatV2(s, sameIndexType(s, indices), axis), Shape: shape,
	}}
}

func sumDense(s *op.Scope, grads []Grad) Grad {
	dense := make([]op.Output, len(grads))
	for i, g := range grads {
		dense[i] = Densify(s, g)
	}
	return Of(op.AddN(s, dense))
}

// Densify returns the gradient as a tensor. The shape of a sparse one must be known.
func Densify(s *op.Scope, g Grad) op.Output {
	if g.Slices == nil {
		return g.Dense
	}
	if g.Slices.Shape.Node == nil {
		s.Fail(status.InvalidArgumentf("gradients: cannot make a tensor of IndexedSlices of unknown shape"))
		return op.Output{}
	}
	rows := op.StridedSlice(s, g.Slices.Shape, op.Const(s, []int32{0}), op.Const(s, []int32{1}), op.Const(s, []int32{1}),
		op.StridedSliceShrinkAxisMask(1))
	return op.UnsortedSegmentSum(s, g.Slices.Values, g.Slices.Indices, rows)
}

// sameIndexType casts indices to int64 if their types differ.
func sameIndexType(s *op.Scope, indices []op.Output) []op.Output {
	same := true
	for _, o := range indices[1:] {
		same = same && o.DType() == indices[0].DType()
	}
	if same {
		return indices
	}
	out := make([]op.Output, len(indices))
	for i, o := range indices {
		out[i] = op.Cast(s, o, tensor.Int64)
	}
	return out
}
