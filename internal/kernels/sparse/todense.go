package sparse

import (
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/internal/opkit/gatherscatter"
	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/opkit/strided"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterNew(opdef.Def{
		Name:  "SparseToDense",
		Doc:   "Converts a sparse tensor to a dense tensor with a default value for missing elements.",
		In:    []string{"sparse_indices: Tindices", "output_shape: Tindices", "sparse_values: T", "default_value: T"},
		Out:   []string{"dense: T"},
		Attrs: []string{"validate_indices: bool = true", "T: type", "Tindices: {int32, int64}"},
		Shape: func(c *opdef.ShapeContext) (err error) {
			c.Out[0], err = shapefn.Input(c, 1)
			return err
		},
	}, func(c *kernel.Construction) (kernel.Kernel, error) {
		validate := c.Attrs.Bool("validate_indices")
		return kernel.Func(func(ctx *kernel.Context) error { return toDense(ctx, validate) }), nil
	})
}

func toDense(ctx *kernel.Context, validate bool) error {
	indices, values, fill := ctx.Input(0), ctx.Input(2), ctx.Input(3)
	if err := checkToDense(indices, ctx.Input(1), values, fill); err != nil {
		return err
	}
	shape, err := intarg.Shape(intarg.Values(ctx.Input(1)))
	if err != nil {
		return err
	}
	out, err := ctx.Allocate(0, shape)
	if err != nil {
		return err
	}
	positions := *indices
	if indices.Rank() == 0 {
		if positions, err = indices.WithShape(tensor.Shape{1}); err != nil {
			return err
		}
	}
	list, bad, err := gatherscatter.ReadVectors(&positions, shape, false)
	defer list.Release()
	if err != nil {
		return err
	}
	if validate && (bad >= 0 || !increase(list.Rows)) {
		s := &coo{ix: intarg.Values(indices), shape: shape, n: len(list.Rows), rank: len(shape)}
		if err := s.checkOrder(); err != nil {
			return err
		}
	}
	if bad >= 0 {
		return status.InvalidArgumentf("Indices are not valid (out of bounds).  Shape: %v", shape)
	}
	n := out.NumElements()
	strided.Copy(out, strided.Of(tensor.Shape{int64(n)}), fill, strided.View{Dims: []int{n}, Strides: []int{0}})
	gatherscatter.Scatter(elementwise.Assign, out, values, list, 1)
	return nil
}

// increase reports whether the numbers are strictly increasing.
func increase(list []int64) bool {
	for i := 1; i < len(list); i++ {
		if list[i] <= list[i-1] {
			return false
		}
	}
	return true
}

// prepended returns a vector of the scalar first and the elements of t.
func prepended(t, first *tensor.Tensor) (tensor.Tensor, error) {
	out, err := tensor.Alloc(t.DType(), tensor.Shape{int64(t.NumElements() + 1)})
	if err != nil {
		return out, err
	}
	head, tail := out.Rows(0, 1), out.Rows(1, t.NumElements()+1)
	gatherscatter.Gather(&head, first, gatherscatter.List{Rows: []int64{0}}, gatherscatter.Layout{Outer: 1, Rows: 1, Width: 1})
	gatherscatter.Gather(&tail, t, gatherscatter.List{Rows: []int64{0}}, gatherscatter.Layout{Outer: 1, Rows: 1, Width: t.NumElements()})
	return out, nil
}

func checkToDense(indices, shape, values, fill *tensor.Tensor) error {
	n, dims := 1, 1
	if indices.Rank() > 2 {
		return status.InvalidArgumentf("sparse_indices should be a scalar, vector, or matrix, got shape %v", indices.Shape())
	}
	if indices.Rank() > 0 {
		n = indices.Dim(0)
	}
	if indices.Rank() > 1 {
		dims = indices.Dim(1)
	}
	switch {
	case shape.Rank() != 1:
		return status.InvalidArgumentf("output_shape must be rank 1, got shape %v", shape.Shape())
	case shape.NumElements() != dims:
		return status.InvalidArgumentf("output_shape has incorrect number of elements: %d should be: %d", shape.NumElements(), dims)
	case values.Rank() != 0 && (values.Rank() != 1 || values.NumElements() != n):
		return status.InvalidArgumentf("sparse_values has incorrect shape %v, should be [] or [%d]", values.Shape(), n)
	case fill.Rank() != 0:
		return status.InvalidArgumentf("default_value should be a scalar.")
	}
	return nil
}
