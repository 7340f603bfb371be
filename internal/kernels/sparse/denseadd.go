package sparse

import (
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/internal/opkit/gatherscatter"
	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/opkit/typeset"
	"github.com/weft-ml/weft/internal/sys/bulk"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "SparseTensorDenseAdd", Doc: "Adds a sparse tensor to a dense tensor.",
			In: []string{"a_indices: Tindices", "a_values: T", "a_shape: Tindices", "b: T"}, Out: []string{"output: T"},
			Attrs: []string{numbers, "Tindices: {int32, int64}"},
			Shape: func(c *opdef.ShapeContext) error {
				c.Out[0] = c.In[3]
				return nil
			},
		},
		Kernels: kernel.ForTypes("T", kernel.Stateless(denseAdd), typeset.Numbers...),
	})
}

func checkDenseAdd(indices, values, shape, b *tensor.Tensor) error {
	switch {
	case indices.Rank() != 2:
		return status.InvalidArgumentf("Input a_indices should be a matrix but received shape: %v", indices.Shape())
	case values.Rank() != 1 || shape.Rank() != 1:
		return status.InvalidArgumentf("Inputs a_values and a_shape should be vectors but received shapes: %v and %v", values.Shape(), shape.Shape())
	case values.Dim(0) != indices.Dim(0):
		return status.InvalidArgumentf("Dimensions %d and %d are not compatible", indices.Dim(0), values.Dim(0))
	case shape.Dim(0) != indices.Dim(1):
		return status.InvalidArgumentf("Dimensions %d and %d are not compatible", indices.Dim(1), shape.Dim(0))
	case shape.NumElements() != b.Rank():
		return status.InvalidArgumentf("Two operands have different ranks; received: %d and %d", shape.NumElements(), b.Rank())
	}
	for d, n := range intarg.Values(shape) {
		if n != int64(b.Dim(d)) {
			return status.InvalidArgumentf("Dimension %d does not equal (no broadcasting is supported): sparse side %d vs dense side %d", d, n, b.Dim(d))
		}
	}
	if n := indices.Dim(1); n < 1 || n > 5 {
		return status.InvalidArgumentf("Only tensors with ranks between 1 and 5 are currently supported.  Tensor rank: %d", n)
	}
	return nil
}

func denseAdd(ctx *kernel.Context) error {
	indices, values, shape, b := ctx.Input(0), ctx.Input(1), ctx.Input(2), *ctx.Input(3)
	if err := checkDenseAdd(indices, values, shape, &b); err != nil {
		return err
	}
	rank, dims, ix := indices.Dim(1), b.Shape(), intarg.Values(indices)
	position := membudget.Make[int64](indices.Dim(0))
	for i := range position {
		for d, x := range ix[i*rank : (i+1)*rank] {
			if x < 0 || x >= dims[d] {
				return status.InvalidArgumentf("Sparse tensor has an invalid index on dimension %d: a_indices(%d,%d) = %d, dense tensor shape: %s",
					d, i, d, x, joined(dims, " "))
			}
			position[i] = position[i]*dims[d] + x
		}
	}
	out, err := ctx.Forward(3, 0)
	if err != nil {
		return err
	}
	if !out.SharesBuffer(&b) {
		bulk.Copy(out.Bytes(), b.Bytes())
	}
	gatherscatter.Scatter(elementwise.Add, out, values, gatherscatter.List{Rows: position}, 1)
	return nil
}
