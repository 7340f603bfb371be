package sparse

import (
	"slices"

	"github.com/weft-ml/weft/internal/opkit/elementwise"
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
	for _, o := range []struct {
		name, doc, types string
		op               elementwise.Op
	}{
		{"SparseSparseMaximum", "Computes the elementwise maximum of two sparse tensors. Missing elements are zero.", realNumbers, elementwise.Max},
		{"SparseSparseMinimum", "Computes the elementwise minimum of two sparse tensors. Missing elements are zero.", numbers, elementwise.Min},
	} {
		kernel.Register(kernel.Op{
			Def: opdef.Def{
				Name: o.name, Doc: o.doc,
				In:  []string{"a_indices: int64", "a_values: T", "a_shape: int64", "b_indices: int64", "b_values: T", "b_shape: int64"},
				Out: []string{"output_indices: int64", "output_values: T"}, Attrs: []string{o.types},
				Shape: func(c *opdef.ShapeContext) error {
					c.Out[0], c.Out[1] = tensor.UnknownDims(2), tensor.UnknownDims(1)
					return shapefn.CheckRanks(c, 0, 2, 1, 1, 2, 1, 1)
				},
			},
			Kernels: kernel.ForTypes("T", kernel.Stateless(func(ctx *kernel.Context) error { return extremes(ctx, o.op) }), typeset.Real...),
		})
	}
}

// union merges the indices of two tensors with ordered indices. fromA and fromB are the element
// numbers at each index, or -1 if a tensor has no element there.
func union(a, b *coo) (ix, fromA, fromB []int64) {
	for i, j := 0, 0; i < a.n || j < b.n; {
		order := 0
		switch {
		case i == a.n:
			order = 1
		case j == b.n:
			order = -1
		default:
			order = slices.Compare(a.at(i), b.at(j))
		}
		x, y := int64(-1), int64(-1)
		if order >= 0 {
			y = int64(j)
			j++
		}
		if order <= 0 {
			x = int64(i)
			ix = membudget.AppendAll(ix, a.at(i)...)
			i++
		} else {
			ix = membudget.AppendAll(ix, b.at(j-1)...)
		}
		fromA, fromB = membudget.Append(fromA, x), membudget.Append(fromB, y)
	}
	return ix, fromA, fromB
}

func extremes(ctx *kernel.Context, op elementwise.Op) error {
	var sides [2]*coo
	for k := range sides {
		s, err := checkedCOO(ctx.Input(3*k), ctx.Input(3*k+1), ctx.Input(3*k+2))
		if err == nil {
			err = s.checkBounds()
		}
		if err != nil {
			return err
		}
		sides[k] = s
	}
	a, b := sides[0], sides[1]
	switch {
	case a.rank == 0:
		return status.InvalidArgumentf("Tensors must not be empty")
	case a.rank != b.rank:
		return status.InvalidArgumentf("Operands do not have the same ranks; got shapes: %s and %s", ctx.Input(2).Summary(10), ctx.Input(5).Summary(10))
	}
	for d, x := range intarg.Values(ctx.Input(2)) {
		if x != b.shape[d] {
			return status.InvalidArgumentf("Operands' shapes do not match: got %d and %d for dimension %d", x, b.shape[d], d)
		}
	}
	ix, fromA, fromB := union(a, b)
	if err := putMatrix(ctx, 0, ix, len(fromA), a.rank); err != nil {
		return err
	}
	return combineWith(ctx, op, a.values, fromA, b.values, fromB)
}

// combineWith sets output 1 to the combination of two vectors' elements with the given numbers.
func combineWith(ctx *kernel.Context, op elementwise.Op, a *tensor.Tensor, fromA []int64, b *tensor.Tensor, fromB []int64) error {
	out, err := ctx.Allocate(1, tensor.Shape{int64(len(fromA))})
	if err != nil {
		return err
	}
	other, err := tensor.Alloc(b.DType(), out.Shape())
	if err != nil {
		return err
	}
	defer other.Release()
	gather(out, a, fromA)
	gather(&other, b, fromB)
	elementwise.Accumulate(op, out, &other)
	return nil
}
