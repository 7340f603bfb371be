package sparse

import (
	"cmp"
	"context"
	"math"

	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	attrs := []string{"T: {int32, int64}", "minlength: int >= -1 = -1", "maxlength: int >= -1 = -1", "binary_output: bool",
		"output_type: {int32, int64, float32, float64}"}
	register := func(name, of string, in []string, rank func(c *opdef.ShapeContext) (int64, error), read func(*kernel.Context) (*counted, error)) {
		kernel.Register(kernel.Op{
			Def: opdef.Def{
				Name: name, Doc: "Counts the occurrences of each integer in the rows of a " + of + " tensor, or sums their weights.", In: in,
				Out: []string{"output_indices: int64", "output_values: output_type", "output_dense_shape: int64"}, Attrs: attrs,
				Shape: func(c *opdef.ShapeContext) error {
					n, err := rank(c)
					copy(c.Out, unknownCOO(n))
					return err
				},
			},
			Kernels: kernel.ByType("output_type", kernel.Table{
				tensor.Int32: newCount[int32](read), tensor.Int64: newCount[int64](read),
				tensor.Float32: newCount[float32](read), tensor.Float64: newCount[float64](read),
			}),
		})
	}
	register("DenseCountSparseOutput", "dense", []string{"values: T", "weights: output_type"}, denseCountRank, denseCounted)
	register("SparseCountSparseOutput", "sparse", []string{"indices: int64", "values: T", "dense_shape: int64", "weights: output_type"},
		func(c *opdef.ShapeContext) (int64, error) { return c.In[0].Dim(1), shapefn.CheckRanks(c, 0, 2) }, sparseCounted)
	register("RaggedCountSparseOutput", "ragged", []string{"splits: int64", "values: T", "weights: output_type"},
		func(c *opdef.ShapeContext) (int64, error) {
			if !c.In[1].RankKnown() {
				return shapefn.Unknown, nil
			}
			return int64(c.In[1].Rank() + 1), nil
		}, raggedCounted)
}

func denseCountRank(c *opdef.ShapeContext) (int64, error) {
	out := c.In[0]
	if shapefn.Count(c.In[1]) != 0 {
		var err error
		if out, err = opdef.MergeShapes(c.In[1], c.In[0]); err != nil {
			return shapefn.Unknown, err
		}
	}
	if !out.RankKnown() {
		return shapefn.Unknown, nil
	}
	return int64(out.Rank()), nil
}

// counted is the input of a count: integers, the row of each, and the number of rows.
type counted struct {
	numbers []int64
	rows    []int64 // nil for a single row, which is no dimension of the result
	n       int64
	weights *tensor.Tensor
}

func checkCounted(values, weights *tensor.Tensor, what string) error {
	for _, v := range intarg.Values(values) {
		if v < 0 {
			return status.InvalidArgumentf("Input values must all be non-negative")
		}
	}
	if weights.NumElements() > 0 && !weights.Shape().Equal(values.Shape()) {
		return status.InvalidArgumentf("Weights and %s must have the same shape. Weight shape: %v; %s shape: %v", what, weights.Shape(), what, values.Shape())
	}
	return nil
}

func denseCounted(ctx *kernel.Context) (*counted, error) {
	values, weights := ctx.Input(0), ctx.Input(1)
	if values.Rank() != 1 && values.Rank() != 2 {
		return nil, status.InvalidArgumentf("Input must be a 1 or 2-dimensional tensor. Got: %v", values.Shape())
	}
	if err := checkCounted(values, weights, "data"); err != nil {
		return nil, err
	}
	c := &counted{numbers: intarg.Values(values), n: 1, weights: weights}
	if values.Rank() == 1 {
		return c, nil
	}
	if c.n = int64(values.Dim(0)); c.n == 0 {
		return nil, status.InvalidArgumentf("Invalid input: Shapes dimension cannot be 0.")
	}
	c.rows = membudget.Make[int64](len(c.numbers))
	for i := range c.rows {
		c.rows[i] = int64(i / values.Dim(1))
	}
	return c, nil
}

func checkSparseCounted(indices, values, shape *tensor.Tensor) error {
	switch {
	case indices.Rank() != 2:
		return status.InvalidArgumentf("Input indices must be a 2-dimensional tensor. Got: %v", indices.Shape())
	case values.Rank() != 1:
		return status.InvalidArgumentf("Input values must be a vector. Got: %v", values.Shape())
	case shape.Rank() != 1:
		return status.InvalidArgumentf("Input shape must be a vector. Got: %v", shape.Shape())
	case values.Dim(0) != indices.Dim(0):
		return status.InvalidArgumentf("Number of values must match first dimension of indices.Got %d values, indices shape: %v", values.Dim(0), indices.Shape())
	case shape.Dim(0) != indices.Dim(1):
		return status.InvalidArgumentf("Number of dimensions must match second dimension of indices.Got %d dimensions, indices shape: %v",
			shape.Dim(0), indices.Shape())
	case shape.NumElements() == 0:
		return status.InvalidArgumentf("The shape argument requires at least one element.")
	}
	dims := intarg.Values(shape)
	for i, x := range intarg.Values(indices) {
		if d := i % len(dims); x < 0 || x >= dims[d] {
			return status.InvalidArgumentf("Invalid index value at %d: dimension %d has value %d which is not in [0, %d) (as given by dense shape %v",
				i/len(dims), d, x, dims[d], shape)
		}
	}
	return nil
}

func sparseCounted(ctx *kernel.Context) (*counted, error) {
	indices, values, shape, weights := ctx.Input(0), ctx.Input(1), ctx.Input(2), ctx.Input(3)
	if err := checkSparseCounted(indices, values, shape); err != nil {
		return nil, err
	}
	if err := checkCounted(values, weights, "values"); err != nil {
		return nil, err
	}
	c := &counted{numbers: intarg.Values(values), n: 1, weights: weights}
	dims := intarg.Values(shape)
	if len(dims) == 1 {
		return c, nil
	}
	if c.n = dims[0]; c.n <= 0 || c.n >= math.MaxInt32 {
		return nil, status.InvalidArgumentf("Cannot allocate %d batches, is the dense shape too wide?", int32(c.n))
	}
	s := indexed(indices)
	c.rows = membudget.Make[int64](s.n)
	for i := range c.rows {
		c.rows[i] = s.at(i)[0]
	}
	return c, nil
}

func raggedCounted(ctx *kernel.Context) (*counted, error) {
	splits, values, weights := intarg.Values(ctx.Input(0)), ctx.Input(1), ctx.Input(2)
	n := len(splits) - 1
	switch {
	case n <= 0:
		return nil, status.InvalidArgumentf("Must provide at least 2 elements for the splits argument")
	case splits[0] != 0:
		return nil, status.InvalidArgumentf("Splits must start with 0, not with %d", splits[0])
	case splits[n] != int64(values.NumElements()):
		return nil, status.InvalidArgumentf("Splits must end with the number of values, got %d instead of %d", splits[n], values.NumElements())
	}
	if err := checkCounted(values, weights, "values"); err != nil {
		return nil, err
	}
	c := &counted{numbers: intarg.Values(values), n: int64(n), weights: weights}
	row := 0
	for i := range c.numbers {
		for int64(i) >= splits[row] {
			row++
		}
		c.rows = membudget.Append(c.rows, int64(row-1))
	}
	return c, nil
}

// row returns the row of integer i.
func (c *counted) row(i int64) int64 {
	if c.rows == nil {
		return 0
	}
	return c.rows[i]
}

// sorted returns the positions of the integers below the limit, if any, ordered by row and then by
// value. It fails when ctx ends.
func (c *counted) sorted(ctx context.Context, limit int64) ([]int64, error) {
	var order []int64
	for i, v := range c.numbers {
		if limit < 0 || v < limit {
			order = membudget.Append(order, int64(i))
		}
	}
	return order, sortStable(ctx, order, func(a, b int64) int {
		return cmp.Or(cmp.Compare(c.row(a), c.row(b)), cmp.Compare(c.numbers[a], c.numbers[b]))
	})
}

func newCount[W interface {
	tensor.Elem
	int32 | int64 | float32 | float64
}](read func(*kernel.Context) (*counted, error)) kernel.New {
	return func(k *kernel.Construction) (kernel.Kernel, error) {
		least, limit, binary := int64(k.Attrs.Int("minlength")), int64(k.Attrs.Int("maxlength")), k.Attrs.Bool("binary_output")
		return kernel.Func(func(ctx *kernel.Context) error {
			c, err := read(ctx)
			if err != nil {
				return err
			}
			order, err := c.sorted(ctx.Context(), limit)
			if err != nil {
				return err
			}
			greatest := int64(0)
			var counts []W
			var ix []int64
			for k, i := range order {
				v := c.numbers[i]
				greatest = max(greatest, v)
				if k == 0 || c.row(i) != c.row(order[k-1]) || v != c.numbers[order[k-1]] {
					if counts = membudget.Append(counts, 0); c.rows != nil {
						ix = membudget.Append(ix, c.row(i))
					}
					ix = membudget.Append(ix, v)
				}
				switch last := &counts[len(counts)-1]; {
				case binary:
					*last = 1
				case c.weights.NumElements() > 0:
					*last += tensor.Values[W](c.weights)[i]
				default:
					*last++
				}
			}
			width := limit
			if limit < 0 {
				width = max(greatest+1, least)
			}
			dims := []int64{c.n, width}
			if c.rows == nil {
				dims = dims[1:]
			}
			return putCounts(ctx, ix, counts, dims)
		}), nil
	}
}

func putCounts[W tensor.Elem](ctx *kernel.Context, ix []int64, counts []W, dims []int64) error {
	if err := putMatrix(ctx, 0, ix, len(counts), len(dims)); err != nil {
		return err
	}
	if err := putVector(ctx, 2, dims); err != nil {
		return err
	}
	out, err := ctx.Allocate(1, tensor.Shape{int64(len(counts))})
	if err == nil {
		copy(tensor.Values[W](out), counts)
	}
	return err
}
