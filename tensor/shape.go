package tensor

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/weft-ml/weft/status"
)

// MaxRank is the largest number of dimensions that a shape may have.
const MaxRank = 254

// Shape is the size of a tensor in each dimension, outermost first. The shape of a scalar is empty.
// The Shape of a tensor is shared and must not be modified.
type Shape []int64

// NumElements returns the product of the dimensions. It does not overflow for a shape that passed
// [Shape.Check].
func (s Shape) NumElements() int64 {
	n := int64(1)
	for _, d := range s {
		n *= d
	}
	return n
}

// Check returns an InvalidArgument error if a dimension is negative, if there are more than
// [MaxRank] dimensions, or if the number of elements overflows.
func (s Shape) Check() error {
	if len(s) > MaxRank {
		return status.InvalidArgumentf("Shape has %d dimensions; at most %d are allowed", len(s), MaxRank)
	}
	n, zero := int64(1), false
	for _, d := range s {
		if d < 0 {
			return status.InvalidArgumentf("Dimension %d must be >= 0; shape is %v", d, s)
		}
		if zero = zero || d == 0; zero {
			continue
		}
		if n > math.MaxInt64/d {
			return status.InvalidArgumentf("Encountered overflow when multiplying %d with %d, result: -1; shape is %v", n, d, s)
		}
		n *= d
	}
	return nil
}

// Equal reports whether s and t have the same rank and dimensions.
func (s Shape) Equal(t Shape) bool { return slices.Equal(s, t) }

// String returns the shape in TensorFlow's format, "[2,3]".
func (s Shape) String() string {
	b := append(make([]byte, 0, 4*len(s)+2), '[')
	for i, d := range s {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, d, 10)
	}
	return string(append(b, ']'))
}

// Partial returns s as a fully known PartialShape.
func (s Shape) Partial() PartialShape { return PartialShape{known: true, dims: s} }

// UnknownDim is the size of an unknown dimension.
const UnknownDim int64 = -1

// PartialShape is the part of a shape that is known before a graph runs: nothing, the rank, or some
// dimensions. The zero value has unknown rank. It is immutable.
type PartialShape struct {
	known bool
	dims  []int64
}

// MakePartial returns a shape of known rank. UnknownDim, or any negative number, is an unknown
// dimension. If there are more than [MaxRank], which no shape has, the rank is unknown: operations
// of a graph could double the rank again and again.
func MakePartial(dims ...int64) PartialShape {
	if len(dims) > MaxRank {
		return PartialShape{}
	}
	for i, d := range dims {
		if d < UnknownDim {
			dims = slices.Clone(dims)
			for j := i; j < len(dims); j++ {
				dims[j] = max(dims[j], UnknownDim)
			}
			break
		}
	}
	return PartialShape{known: true, dims: dims}
}

// UnknownDims returns a shape of the given rank with all dimensions unknown. The rank, too, is
// unknown if no shape has it.
func UnknownDims(rank int) PartialShape {
	if rank < 0 || rank > MaxRank {
		return PartialShape{}
	}
	dims := make([]int64, rank)
	for i := range dims {
		dims[i] = UnknownDim
	}
	return PartialShape{known: true, dims: dims}
}

// RankKnown reports whether the number of dimensions is known.
func (p PartialShape) RankKnown() bool { return p.known }

// Rank returns the number of dimensions, or -1 if it is unknown.
func (p PartialShape) Rank() int {
	if !p.known {
		return -1
	}
	return len(p.dims)
}

// Dim returns dimension i, counted from the end if i is negative. It returns UnknownDim if the
// dimension or the rank is unknown.
func (p PartialShape) Dim(i int) int64 {
	if i < 0 {
		i += len(p.dims)
	}
	if i < 0 || i >= len(p.dims) {
		return UnknownDim
	}
	return p.dims[i]
}

// Dims returns a copy of the dimensions; nil for an unknown rank.
func (p PartialShape) Dims() []int64 { return slices.Clone(p.dims) }

// Full returns the shape and true if every dimension is known.
func (p PartialShape) Full() (Shape, bool) {
	if !p.known || slices.Contains(p.dims, UnknownDim) {
		return nil, false
	}
	return Shape(slices.Clone(p.dims)), true
}

// Compatible reports whether p and q can describe the same shape.
func (p PartialShape) Compatible(q PartialShape) bool {
	if !p.known || !q.known {
		return true
	}
	if len(p.dims) != len(q.dims) {
		return false
	}
	for i, d := range p.dims {
		if e := q.dims[i]; d != e && d != UnknownDim && e != UnknownDim {
			return false
		}
	}
	return true
}

// CompatibleWith reports whether p can describe the shape s.
func (p PartialShape) CompatibleWith(s Shape) bool { return p.Compatible(s.Partial()) }

// Merge returns the combined knowledge of p and q, and false if they contradict each other.
func (p PartialShape) Merge(q PartialShape) (PartialShape, bool) {
	switch {
	case !p.Compatible(q):
		return PartialShape{}, false
	case !p.known:
		return q, true
	case !q.known:
		return p, true
	}
	dims := slices.Clone(p.dims)
	for i, d := range dims {
		if d == UnknownDim {
			dims[i] = q.dims[i]
		}
	}
	return PartialShape{known: true, dims: dims}, true
}

// Equal reports whether p and q are identical, unknown dimensions included.
func (p PartialShape) Equal(q PartialShape) bool {
	return p.known == q.known && slices.Equal(p.dims, q.dims)
}

// String returns the shape in TensorFlow's format: "[2,?]", or "<unknown>" for an unknown rank.
func (p PartialShape) String() string {
	if !p.known {
		return "<unknown>"
	}
	return strings.ReplaceAll(Shape(p.dims).String(), "-1", "?")
}
