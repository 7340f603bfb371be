// Package shapefn provides arithmetic on partially known shapes and dimensions for shape functions.
// Errors have the texts that TensorFlow's clients see when they build a graph.
package shapefn

import (
	"math"
	"slices"

	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Shape is a partially known shape.
type Shape = tensor.PartialShape

// Unknown is an unknown dimension.
const Unknown = tensor.UnknownDim

// Of returns the shape with the given dimensions.
func Of(dims ...int64) Shape { return tensor.MakePartial(dims...) }

// FromDims returns the shape with the given dimensions, where -1 means unknown. Smaller values are
// an InvalidArgument error.
func FromDims(dims []int64) (Shape, error) {
	for _, d := range dims {
		if d < -1 {
			return Shape{}, status.InvalidArgumentf("Dimension %d must be >= -1", d)
		}
	}
	return Of(dims...), nil
}

// Sub returns dimensions lo to hi; negative bounds count from the end. The result is unknown if the
// rank of s is. Bounds are clamped to the rank.
func Sub(s Shape, lo, hi int) Shape {
	if !s.RankKnown() {
		return Shape{}
	}
	dims := s.Dims()
	if lo < 0 {
		lo += len(dims)
	}
	if hi < 0 {
		hi += len(dims)
	}
	lo = min(max(lo, 0), len(dims))
	return Of(dims[lo:min(max(hi, lo), len(dims))]...)
}

// From returns the dimensions from lo on.
func From(s Shape, lo int) Shape {
	if !s.RankKnown() {
		return Shape{}
	}
	return Sub(s, lo, s.Rank())
}

// Concat returns the dimensions of all shapes in order. The result is unknown if the rank of any
// shape is.
func Concat(all ...Shape) Shape {
	var dims []int64
	for _, s := range all {
		if !s.RankKnown() {
			return Shape{}
		}
		//sizedmake:ok dimensions
		dims = append(dims, s.Dims()...)
	}
	return Of(dims...)
}

// Replace returns s with dimension i set to dim; a negative i counts from the end.
func Replace(s Shape, i int, dim int64) Shape {
	if !s.RankKnown() {
		return s
	}
	dims := s.Dims()
	if i < 0 {
		i += len(dims)
	}
	dims[i] = dim
	return Of(dims...)
}

// Full reports whether every dimension of s is known.
func Full(s Shape) bool {
	_, ok := s.Full()
	return ok
}

// Count returns the number of elements, or Unknown.
func Count(s Shape) int64 {
	if !s.RankKnown() {
		return Unknown
	}
	dims := s.Dims()
	if slices.Contains(dims, 0) {
		return 0
	}
	if full, ok := s.Full(); ok {
		return full.NumElements()
	}
	return Unknown
}

// Add returns a + b, or Unknown. A sum that is too large is Unknown: the kernel reports it.
func Add(a, b int64) int64 {
	if a < 0 || b < 0 || a > math.MaxInt64-b {
		return Unknown
	}
	return a + b
}

// Minus returns a - b, or Unknown. A negative result is an InvalidArgument error.
func Minus(a, b int64) (int64, error) {
	if a < 0 || b < 0 {
		return Unknown, nil
	}
	if a < b {
		return Unknown, status.InvalidArgumentf("Negative dimension size caused by subtracting %d from %d", b, a)
	}
	return a - b, nil
}

// Times returns a * b, or Unknown. A product that is too large is Unknown, as in [Add].
func Times(a, b int64) int64 {
	if a == 0 || b == 0 {
		return 0
	}
	if a < 0 || b < 0 || a > math.MaxInt64/b {
		return Unknown
	}
	return a * b
}

// Divide returns a / b, or Unknown. A remainder is an InvalidArgument error.
func Divide(a, b int64) (int64, error) {
	if a < 0 || b == 1 {
		return a, nil
	}
	if b <= 0 {
		return Unknown, status.InvalidArgumentf("Divisor must be positive but is %d", b)
	}
	if a%b != 0 {
		return Unknown, status.InvalidArgumentf("Dimension size must be evenly divisible by %d but is %d", b, a)
	}
	return a / b, nil
}

// Min returns the smaller of two dimensions, or Unknown.
func Min(a, b int64) int64 {
	switch {
	case a == 0 || b == 0:
		return 0
	case a < 0 || b < 0:
		return Unknown
	}
	return min(a, b)
}

// CheckDim checks that a dimension is want or unknown.
func CheckDim(dim, want int64) error {
	if dim >= 0 && dim != want {
		return status.InvalidArgumentf("Dimension must be %d but is %d", want, dim)
	}
	return nil
}

// CheckRanks checks that inputs first, first+1, … of a rule have the given ranks.
func CheckRanks(c *opdef.ShapeContext, first int, ranks ...int) error {
	for i, rank := range ranks {
		if _, err := opdef.WithRank(c.In[first+i], rank); err != nil {
			return err
		}
	}
	return nil
}

// Input returns the shape that input i, a vector of sizes, holds, as far as it is known.
func Input(c *opdef.ShapeContext, i int) (Shape, error) {
	if _, err := opdef.WithRank(c.In[i], 1); err != nil {
		return Shape{}, err
	}
	if t := c.Value(i); t != nil {
		for _, d := range opdef.IntValues(t) {
			if d < -1 {
				return Shape{}, status.InvalidArgumentf("Invalid value in tensor used for shape: %d", d)
			}
		}
	}
	return c.ValueAsShape(i), nil
}

// Dim returns the dimension that input i, a scalar, holds.
func Dim(c *opdef.ShapeContext, i int) (int64, error) {
	t := c.Value(i)
	if t == nil {
		return Unknown, nil
	}
	if t.Rank() != 0 {
		return Unknown, status.InvalidArgumentf("Input must be scalar but has rank %d", t.Rank())
	}
	v, _ := c.ScalarValue(i)
	if v < 0 {
		return Unknown, status.InvalidArgumentf("Dimension size, given by scalar input %d, must be non-negative but is %d", i, v)
	}
	return v, nil
}

// Axis returns the axis that input i, a scalar, holds, counted from the front, and whether it is
// known.
func Axis(c *opdef.ShapeContext, i, rank int) (axis int, known bool, err error) {
	t := c.Value(i)
	if t == nil {
		return 0, false, nil
	}
	if t.Rank() != 0 {
		return 0, false, status.InvalidArgumentf("Input must be scalar but has rank %d", t.Rank())
	}
	v, _ := c.ScalarValue(i)
	if rank < 0 {
		return int(v), v >= 0, nil
	}
	if v < int64(-rank) || v >= int64(rank) {
		return 0, false, status.InvalidArgumentf(
			"Dimension size, given by scalar input %d must be in range [-%d, %d)", v, rank, rank)
	}
	if v < 0 {
		v += int64(rank)
	}
	return int(v), true, nil
}

// Ints returns the value of integer input i, if it is known.
func Ints(c *opdef.ShapeContext, i int) ([]int64, bool) {
	t := c.Value(i)
	if t == nil {
		return nil, false
	}
	v := opdef.IntValues(t)
	return v, v != nil
}
