package opdef

import (
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// ShapeFn is a shape function. It sets the shapes of the outputs of a node, as far as they follow
// from what is known about the inputs. Outputs that it does not set have unknown shape. It returns
// an InvalidArgument error if the inputs are invalid, whatever their unknown sizes are.
type ShapeFn func(*ShapeContext) error

// ShapeContext is the argument of a shape function: a node and what is known about its inputs.
type ShapeContext struct {
	Op    *Op
	Attrs Attrs

	// In holds the shapes of the inputs. Shapes are immutable, so a shape function may return them.
	In []tensor.PartialShape
	// Value returns the value of input i; nil if it is not known before the graph runs.
	Value func(i int) *tensor.Tensor
	// ValueAsShape returns input i, a vector of sizes, as a shape. Unknown elements are unknown
	// dimensions.
	ValueAsShape func(i int) tensor.PartialShape
	// InHandles holds the types and shapes of the values behind inputs of resource or variant
	// handles; nil for unknown ones.
	InHandles [][]tensor.HandleElem

	Out        []tensor.PartialShape // shapes of the outputs, set by the shape function
	OutHandles [][]tensor.HandleElem // handle data of the outputs, like InHandles
}

// ArgInputs returns the range of the inputs of the named argument, lo to hi-1.
func (c *ShapeContext) ArgInputs(name string) (lo, hi int) {
	lo, hi, err := ArgRange(c.Op.Inputs, c.Attrs, name)
	if err != nil {
		return 0, 0
	}
	return lo, hi
}

// SetAll sets the shapes of all outputs to s.
func (c *ShapeContext) SetAll(s tensor.PartialShape) {
	for i := range c.Out {
		c.Out[i] = s
	}
}

// ScalarValue returns the value of the integer scalar input i, and whether it is known.
func (c *ShapeContext) ScalarValue(i int) (int64, bool) {
	t := c.Value(i)
	if t == nil || t.NumElements() != 1 {
		return 0, false
	}
	v := IntValues(t)
	if v == nil {
		return 0, false
	}
	return v[0], true
}

// maxInts is the number of elements up to which shape functions read an integer tensor. A million
// nodes may have the same large constant as their input.
const maxInts = 1 << 16

// IntValues returns the elements of a tensor of type int32 or int64; nil for other types, and for
// more than 65,536 elements.
func IntValues(t *tensor.Tensor) []int64 {
	if t.NumElements() > maxInts {
		return nil
	}
	switch t.DType() {
	case tensor.Int64:
		return tensor.Values[int64](t)
	case tensor.Int32:
		v := tensor.Values[int32](t)
		out := make([]int64, len(v))
		for i, x := range v {
			out[i] = int64(x)
		}
		return out
	default:
		return nil
	}
}

// WithRank returns s if it has the given rank, or a shape of that rank with unknown sizes if the
// rank of s is unknown. Otherwise it fails with InvalidArgument, also if no shape has that rank.
func WithRank(s tensor.PartialShape, rank int) (tensor.PartialShape, error) {
	if rank > tensor.MaxRank {
		return s, status.InvalidArgumentf("Shape must be rank %d, but a shape has at most %d dimensions", rank, tensor.MaxRank)
	}
	if !s.RankKnown() {
		return tensor.UnknownDims(rank), nil
	}
	if s.Rank() != rank {
		return s, status.InvalidArgumentf("Shape must be rank %d but is rank %d", rank, s.Rank())
	}
	return s, nil
}

// WithRankAtLeast returns s, or an InvalidArgument error if its rank is less than the given one.
func WithRankAtLeast(s tensor.PartialShape, rank int) (tensor.PartialShape, error) {
	if s.RankKnown() && s.Rank() < rank {
		return s, status.InvalidArgumentf("Shape must be at least rank %d but is rank %d", rank, s.Rank())
	}
	return s, nil
}

// WithRankAtMost returns s, or an InvalidArgument error if its rank is greater than the given one.
func WithRankAtMost(s tensor.PartialShape, rank int) (tensor.PartialShape, error) {
	if s.RankKnown() && s.Rank() > rank {
		return s, status.InvalidArgumentf("Shape must be at most rank %d but is rank %d", rank, s.Rank())
	}
	return s, nil
}

// MergeShapes returns what is known about a shape that is compatible with both a and b. It fails
// with InvalidArgument if there is no such shape.
func MergeShapes(a, b tensor.PartialShape) (tensor.PartialShape, error) {
	if m, ok := a.Merge(b); ok {
		return m, nil
	}
	if a.Rank() != b.Rank() {
		return a, status.InvalidArgumentf("Shapes must be equal rank, but are %d and %d", a.Rank(), b.Rank())
	}
	i := 0
	for i < a.Rank()-1 && (a.Dim(i) == b.Dim(i) || a.Dim(i) < 0 || b.Dim(i) < 0) {
		i++
	}
	return a, status.InvalidArgumentf("Dimension %d in both shapes must be equal, but are %d and %d. Shapes are %v and %v.",
		i, a.Dim(i), b.Dim(i), a, b)
}

// MergeDims returns the size of two dimensions that must be equal; it may be unknown. It fails with
// InvalidArgument if the sizes differ.
func MergeDims(a, b int64) (int64, error) {
	switch {
	case a < 0:
		return b, nil
	case b < 0 || a == b:
		return a, nil
	}
	return a, status.InvalidArgumentf("Dimensions must be equal, but are %d and %d", a, b)
}

// BroadcastShapes returns the shape of an elementwise operation on a and b, by NumPy's rules, as
// far as it is known. It fails with InvalidArgument if the shapes cannot be broadcast.
func BroadcastShapes(a, b tensor.PartialShape) (tensor.PartialShape, error) {
	if !a.RankKnown() || !b.RankKnown() {
		return tensor.PartialShape{}, nil
	}
	rank := max(a.Rank(), b.Rank())
	dims := make([]int64, rank)
	for i := 1; i <= rank; i++ {
		x, y := int64(1), int64(1)
		if i <= a.Rank() {
			x = a.Dim(-i)
		}
		if i <= b.Rank() {
			y = b.Dim(-i)
		}
		switch {
		case x == y || y == 1:
			dims[rank-i] = x
		case x == 1:
			dims[rank-i] = y
		case x < 0 && y > 1: // the result is y for both possible values of x, 1 and y
			dims[rank-i] = y
		case y < 0 && x > 1:
			dims[rank-i] = x
		case x < 0 || y < 0:
			dims[rank-i] = -1
		default:
			return tensor.PartialShape{}, status.InvalidArgumentf(
				"Dimensions must be equal, but are %d and %d", x, y)
		}
	}
	return tensor.MakePartial(dims...), nil
}

// UnknownShape is the shape function of operations whose output shapes only the kernel knows.
func UnknownShape(*ShapeContext) error { return nil }

// ScalarShape is the shape function of operations whose outputs are scalars.
func ScalarShape(c *ShapeContext) error {
	c.SetAll(tensor.MakePartial())
	return nil
}

// SameShape is the shape function of operations whose outputs have the shape of the first input.
func SameShape(c *ShapeContext) error {
	c.SetAll(c.In[0])
	if len(c.InHandles) > 0 && c.InHandles[0] != nil {
		for i := range c.OutHandles {
			c.OutHandles[i] = c.InHandles[0]
		}
	}
	return nil
}

// MergedShape is the shape function of operations whose inputs and outputs all have the same shape.
func MergedShape(c *ShapeContext) error {
	s := c.In[0]
	for _, in := range c.In[1:] {
		var err error
		if s, err = MergeShapes(s, in); err != nil {
			return err
		}
	}
	c.SetAll(s)
	return nil
}

// BroadcastShape is the shape function of elementwise operations on two inputs.
func BroadcastShape(c *ShapeContext) error {
	s, err := BroadcastShapes(c.In[0], c.In[1])
	if err == nil {
		c.SetAll(s)
	}
	return err
}

// AttrShape is the shape function of operations whose output has the shape in the attribute
// "shape".
func AttrShape(c *ShapeContext) error {
	c.SetAll(c.Attrs.Shape("shape"))
	return nil
}

// ValueShape returns the shape function of operations whose output has the shape that is the value
// of input i.
func ValueShape(i int) ShapeFn {
	return func(c *ShapeContext) error {
		if _, err := WithRankAtMost(c.In[i], 1); err != nil {
			return err
		}
		c.SetAll(c.ValueAsShape(i))
		return nil
	}
}
