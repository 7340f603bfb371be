package opdef

import (
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// ShapeFn is a shape rule: it derives what is known of the shapes of a node's outputs from what is
// known of its inputs, and reports inputs that can never fit. It sets every output it can; those it
// does not set have unknown shape.
type ShapeFn func(*ShapeContext) error

// ShapeContext is a node as a shape rule sees it.
type ShapeContext struct {
	Op    *Op
	Attrs Attrs

	// In is what is known of the inputs. A rule may keep and return these shapes: they are
	// immutable.
	In []tensor.PartialShape
	// Value returns the value of input i where it is known before the graph runs, otherwise nil.
	Value func(i int) *tensor.Tensor
	// ValueAsShape returns the value of input i, a vector of sizes, as far as it is known.
	ValueAsShape func(i int) tensor.PartialShape
	// InHandles is what is known of the values behind inputs that are resource or variant handles;
	// nil where unknown.
	InHandles [][]tensor.HandleElem

	Out        []tensor.PartialShape
	OutHandles [][]tensor.HandleElem
}

// ArgInputs returns the positions lo to hi of the inputs that the named argument stands for.
func (c *ShapeContext) ArgInputs(name string) (lo, hi int) {
	lo, hi, err := ArgRange(c.Op.Inputs, c.Attrs, name)
	if err != nil {
		return 0, 0
	}
	return lo, hi
}

// SetAll sets every output to shape s.
func (c *ShapeContext) SetAll(s tensor.PartialShape) {
	for i := range c.Out {
		c.Out[i] = s
	}
}

// ScalarValue returns the value of the integer scalar input i, if it is known.
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

// IntValues returns the elements of an int32 or int64 tensor; nil for other types.
func IntValues(t *tensor.Tensor) []int64 {
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

// WithRank returns s narrowed to the given rank.
func WithRank(s tensor.PartialShape, rank int) (tensor.PartialShape, error) {
	if !s.RankKnown() {
		return tensor.UnknownDims(rank), nil
	}
	if s.Rank() != rank {
		return s, status.InvalidArgumentf("Shape must be rank %d but is rank %d", rank, s.Rank())
	}
	return s, nil
}

// WithRankAtLeast checks that s can have the given rank or more.
func WithRankAtLeast(s tensor.PartialShape, rank int) (tensor.PartialShape, error) {
	if s.RankKnown() && s.Rank() < rank {
		return s, status.InvalidArgumentf("Shape must be at least rank %d but is rank %d", rank, s.Rank())
	}
	return s, nil
}

// WithRankAtMost checks that s can have the given rank or less.
func WithRankAtMost(s tensor.PartialShape, rank int) (tensor.PartialShape, error) {
	if s.RankKnown() && s.Rank() > rank {
		return s, status.InvalidArgumentf("Shape must be at most rank %d but is rank %d", rank, s.Rank())
	}
	return s, nil
}

// MergeShapes returns what is known from a and b, which must be shapes of equal tensors.
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

// MergeDims returns the size that two dimensions which must be equal have.
func MergeDims(a, b int64) (int64, error) {
	switch {
	case a < 0:
		return b, nil
	case b < 0 || a == b:
		return a, nil
	}
	return a, status.InvalidArgumentf("Dimensions must be equal, but are %d and %d", a, b)
}

// BroadcastShapes returns what is known of the shape of an elementwise operation on a and b, with
// NumPy's rules.
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
		case x < 0 && y > 1: // whatever x is, the result is y
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

// UnknownShape is the rule of operations whose output shapes only the kernel knows.
func UnknownShape(*ShapeContext) error { return nil }

// ScalarShape is the rule of operations whose outputs are scalars.
func ScalarShape(c *ShapeContext) error {
	c.SetAll(tensor.MakePartial())
	return nil
}

// SameShape is the rule of operations whose outputs have the shape of the first input.
func SameShape(c *ShapeContext) error {
	c.SetAll(c.In[0])
	if len(c.InHandles) > 0 && c.InHandles[0] != nil {
		for i := range c.OutHandles {
			c.OutHandles[i] = c.InHandles[0]
		}
	}
	return nil
}

// MergedShape is the rule of operations whose inputs and outputs all have one shape.
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

// BroadcastShape is the rule of elementwise operations on two inputs.
func BroadcastShape(c *ShapeContext) error {
	s, err := BroadcastShapes(c.In[0], c.In[1])
	if err == nil {
		c.SetAll(s)
	}
	return err
}

// AttrShape is the rule of operations whose output has the shape given by attribute "shape".
func AttrShape(c *ShapeContext) error {
	c.SetAll(c.Attrs.Shape("shape"))
	return nil
}

// ValueShape returns the rule of operations whose output has the shape that the value of input i
// gives.
func ValueShape(i int) ShapeFn {
	return func(c *ShapeContext) error {
		if _, err := WithRankAtMost(c.In[i], 1); err != nil {
			return err
		}
		c.SetAll(c.ValueAsShape(i))
		return nil
	}
}
