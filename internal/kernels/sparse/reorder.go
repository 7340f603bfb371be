package sparse

import (
	"slices"

	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
)

func init() {
	kernel.RegisterFunc(opdef.Def{
		Name: "SparseReorder", Doc: "Reorders the elements of a sparse tensor into row-major order.",
		In:    []string{"input_indices: int64", "input_values: T", "input_shape: int64"},
		Out:   []string{"output_indices: int64", "output_values: T"},
		Attrs: []string{"T: type"},
		Shape: func(c *opdef.ShapeContext) error {
			copy(c.Out, c.In[:2])
			return shapefn.CheckRanks(c, 0, 2, 1, 1)
		},
	}, reorder)
}

func reorder(ctx *kernel.Context) error {
	s, err := checkedCOO(ctx.Input(0), ctx.Input(1), ctx.Input(2))
	if err != nil {
		return err
	}
	order, err := s.sorted(ctx.Context(), span(s.rank))
	if err != nil {
		return err
	}
	if slices.IsSorted(order) {
		if err := ctx.PassInput(0, 0); err != nil {
			return err
		}
		return ctx.PassInput(1, 1)
	}
	if err := putMatrix(ctx, 0, s.rowsAt(order), s.n, s.rank); err != nil {
		return err
	}
	return pick(ctx, 1, s.values, order)
}
