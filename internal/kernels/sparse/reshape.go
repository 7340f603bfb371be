package sparse

import (
	"math/bits"

	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterFunc(opdef.Def{
		Name: "SparseReshape",
		Doc:  "Reshapes a sparse tensor to another dense shape with the same number of elements.",
		In:   []string{"input_indices: int64", "input_shape: int64", "new_shape: int64"},
		Out:  []string{"output_indices: int64", "output_shape: int64"},
		Shape: func(c *opdef.ShapeContext) error {
			c.Out[0], c.Out[1] = shapefn.Of(c.In[0].Dim(0), c.In[2].Dim(0)), shapefn.Of(c.In[2].Dim(0))
			return shapefn.CheckRanks(c, 0, 2, 1, 1)
		},
	}, reshape)
}

func reshape(ctx *kernel.Context) error {
	indices, shape, target := ctx.Input(0), ctx.Input(1), ctx.Input(2)
	switch {
	case indices.Rank() != 2:
		return status.InvalidArgumentf("Input must be a matrix.")
	case shape.Rank() != 1:
		return status.InvalidArgumentf("Input shape must be a vector.")
	case indices.Dim(1) != shape.Dim(0):
		return status.InvalidArgumentf("Input tensor rank must match input shape length.")
	case target.Rank() != 1:
		return status.InvalidArgumentf("Target shape should be a vector but received shape %v", target.Shape())
	}
	from, err := intarg.Shape(intarg.Values(shape))
	if err != nil {
		return err
	}
	to, err := reshaped(from, intarg.Values(target))
	if err != nil {
		return err
	}
	if from.Equal(to) {
		if err := ctx.PassInput(0, 0); err != nil {
			return err
		}
		return ctx.PassInput(1, 1)
	}
	n := indices.Dim(0)
	if n > 0 && from.NumElements() == 0 {
		return status.InvalidArgumentf("Input tensor has %d non zero elements but input shape (%v) or output shape ([%s]) is empty", n, from, joined(to, ","))
	}
	if err := putVector(ctx, 1, to); err != nil {
		return err
	}
	return putMatrix(ctx, 0, renumbered(intarg.Values(indices), n, from, to), n, len(to))
}

// reshaped returns the dense shape target, with a dimension of -1 inferred from the shape from.
func reshaped(from tensor.Shape, target []int64) (tensor.Shape, error) {
	size, to := from.NumElements(), tensor.Shape(membudget.AppendAll(nil, target...))
	product, open := int64(1), -1
	for d, x := range target {
		switch {
		case x == -1 && open >= 0:
			return nil, status.InvalidArgumentf("only one output dimension may be -1, not both %d and %d", open, d)
		case x == -1:
			open, to[d] = d, 1
		case x < 0:
			return nil, status.InvalidArgumentf("size %d must be non-negative, not %d", d, x)
		default:
			if hi, lo := bits.Mul64(uint64(product), uint64(x)); hi != 0 || int64(lo) < 0 {
				return nil, status.InvalidArgumentf("Encountered overflow when multiplying %d with %d, result: -1", product, x)
			}
			product *= x
		}
	}
	if open >= 0 {
		if product == 0 {
			return nil, status.InvalidArgumentf("reshape cannot infer the missing input size for an empty tensor unless all specified input sizes are non-zero")
		}
		if size%product != 0 {
			return nil, status.InvalidArgumentf("Input to reshape is a SparseTensor with %d dense values, but the requested shape requires a multiple of %d. input_shape=%v output_shape=[%s]",
				size, product, from, joined(to, ","))
		}
		to[open] = size / product
	}
	if n := to.NumElements(); n != size {
		return nil, status.InvalidArgumentf("Input to reshape is a tensor with %d dense values, but the requested shape has %d. input_shape=%v output_shape=[%s]",
			size, n, from, joined(to, ","))
	}
	return to, nil
}

// renumbered converts n coordinates from one shape to another.
func renumbered(ix []int64, n int, from, to tensor.Shape) []int64 {
	out := membudget.Make[int64](n * len(to))
	for i := range n {
		id := int64(0)
		for d, x := range ix[i*len(from) : (i+1)*len(from)] {
			id = id*from[d] + x
		}
		for d := len(to) - 1; d > 0; d-- {
			out[i*len(to)+d] = id % to[d]
			id /= to[d]
		}
		if len(to) > 0 {
			out[i*len(to)] = id
		}
	}
	return out
}
