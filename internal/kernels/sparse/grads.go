package sparse

import (
	"slices"

	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/opkit/typeset"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "SparseAddGrad", Doc: "Computes the gradients of SparseAdd with respect to the values of both tensors.",
			In:  []string{"backprop_val_grad: T", "a_indices: int64", "b_indices: int64", "sum_indices: int64"},
			Out: []string{"a_val_grad: T", "b_val_grad: T"}, Attrs: []string{numbers},
			Shape: func(c *opdef.ShapeContext) error {
				c.Out[0], c.Out[1] = shapefn.Of(c.In[1].Dim(0)), shapefn.Of(c.In[2].Dim(0))
				return shapefn.CheckRanks(c, 1, 2, 2)
			},
		},
		Kernels: kernel.ForTypes("T", kernel.Stateless(addGrad), tensor.Float32, tensor.Float64, tensor.Int64, tensor.Int32, tensor.Int16,
			tensor.Int8, tensor.Complex64, tensor.Complex128),
	})
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "SparseSliceGrad", Doc: "Computes the gradient of SparseSlice with respect to the values.",
			In:  []string{"backprop_val_grad: T", "input_indices: int64", "input_start: int64", "output_indices: int64"},
			Out: []string{"val_grad: T"}, Attrs: []string{numbers},
			Shape: func(c *opdef.ShapeContext) error {
				c.Out[0] = shapefn.Of(c.In[1].Dim(0))
				return shapefn.CheckRanks(c, 1, 2)
			},
		},
		Kernels: kernel.ForTypes("T", kernel.Stateless(sliceGrad), typeset.Numbers...),
	})
}

// indexed returns a sparse tensor with indices and no values.
func indexed(indices *tensor.Tensor) *coo {
	return &coo{ix: intarg.Values(indices), n: indices.Dim(0), rank: indices.Dim(1)}
}

func addGrad(ctx *kernel.Context) error {
	grad, a, b, sum := ctx.Input(0), ctx.Input(1), ctx.Input(2), ctx.Input(3)
	switch {
	case a.Rank() != 2 || b.Rank() != 2 || sum.Rank() != 2:
		return status.InvalidArgumentf("Input indices should be matrices but received shapes: %v and %v and %v", a.Shape(), b.Shape(), sum.Shape())
	case grad.Rank() != 1:
		return status.InvalidArgumentf("Input backprop_val_grad should be a vector but received shape: %v", grad.Shape())
	case a.Dim(1) != b.Dim(1) || b.Dim(1) != sum.Dim(1):
		return status.InvalidArgumentf("The densified operands should have the same ndims; for A, B, sum got: %d%d%d", a.Dim(1), b.Dim(1), sum.Dim(1))
	case grad.NumElements() != sum.Dim(0):
		return status.InvalidArgumentf("# elements of backprop_val_grad and # rows of sum_indices should match (#nnz of sum): got %d and %d",
			grad.NumElements(), sum.Dim(0))
	}
	for i, side := range []*tensor.Tensor{a, b} {
		if err := pick(ctx, i, grad, found(indexed(side), indexed(sum))); err != nil {
			return err
		}
	}
	return nil
}

// found returns, for each element of s, the number of the element of t with the same index, or -1.
// The indices of both are ordered.
func found(s, t *coo) []int64 {
	out := membudget.Make[int64](s.n)
	k := 0
	for i := range out {
		for k < t.n && slices.Compare(t.at(k), s.at(i)) < 0 {
			k++
		}
		if out[i] = -1; k < t.n && slices.Equal(t.at(k), s.at(i)) {
			out[i] = int64(k)
		}
	}
	return out
}

func checkSliceGrad(grad, in, start, out *tensor.Tensor) error {
	switch {
	case in.Rank() != 2 || out.Rank() != 2:
		return status.InvalidArgumentf("Input and output indices should be matrices but received shapes: %v and %v", in.Shape(), out.Shape())
	case grad.Rank() != 1:
		return status.InvalidArgumentf("Input backprop_val_grad should be a vector but received shape: %v", grad.Shape())
	case in.Dim(1) != out.Dim(1):
		return status.InvalidArgumentf("The input and output should have the same ndims: got: %d and %d", in.Dim(1), out.Dim(1))
	case out.Dim(0) > in.Dim(0):
		return status.InvalidArgumentf("# rows of output_indices should be not greater than of input_indices, got %d and %d", out.Dim(0), in.Dim(0))
	case grad.NumElements() != out.Dim(0):
		return status.InvalidArgumentf("# elements of backprop_val_grad and # rows of output_indices should match (#nnz of sum): got %d and %d",
			grad.NumElements(), out.Dim(0))
	case start.Rank() != 1:
		return status.InvalidArgumentf("The input_start should be a vector but received shape %v", start.Shape())
	case start.NumElements() != in.Dim(1):
		return status.InvalidArgumentf("Expected input_start to be a vector of length %d but got length %d", in.Dim(1), start.NumElements())
	}
	return nil
}

func sliceGrad(ctx *kernel.Context) error {
	grad, start := ctx.Input(0), ctx.Input(2)
	if err := checkSliceGrad(grad, ctx.Input(1), start, ctx.Input(3)); err != nil {
		return err
	}
	in, out, offset := indexed(ctx.Input(1)), indexed(ctx.Input(3)), intarg.Values(start)
	from := membudget.Make[int64](in.n)
	used := 0
	for i := range from {
		from[i] = -1
		if used == out.n {
			continue
		}
		//sizedmake:ok an element for each dimension
		at := slices.Clone(out.at(used))
		for d := range at {
			at[d] += offset[d]
		}
		if slices.Equal(in.at(i), at) {
			from[i] = int64(used)
			used++
		}
	}
	if used != out.n && in.n > 0 {
		return status.Internalf("Elements of backprop_val_grad aren't all propagated. Num elements:%d, used: %d", out.n, used)
	}
	return pick(ctx, 0, grad, from)
}
