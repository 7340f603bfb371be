package array

import (
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/internal/opkit/gatherscatter"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
)

// A master of TensorFlow replaces ParallelConcat by these operations. _ParallelConcatStart
// allocates the result, and each _ParallelConcatUpdate writes one row into it, in place. Nodes that
// read the result have control edges from all updates.
func init() {
	kernel.RegisterNew(opdef.Def{
		Name: "_ParallelConcatStart", Doc: "Returns an empty tensor of the given shape.",
		Out: []string{"output: dtype"}, Attrs: []string{"shape: shape", "dtype: type"}, Stateful: true,
		Shape: func(c *opdef.ShapeContext) error {
			c.Out[0] = c.Attrs.Shape("shape")
			return nil
		},
	}, func(c *kernel.Construction) (kernel.Kernel, error) {
		shape, ok := c.Attrs.Shape("shape").Full()
		if !ok {
			return nil, status.InvalidArgumentf("TensorShapeProto has unknown dimensions: %v", c.Attrs.Shape("shape"))
		}
		return kernel.Func(func(ctx *kernel.Context) error {
			_, err := ctx.Allocate(0, shape)
			return err
		}), nil
	})
	kernel.RegisterNew(opdef.Def{
		Name: "_ParallelConcatUpdate", Doc: "Writes update to row loc of value, in place.",
		In: []string{"value: T", "update: T"}, Out: []string{"output: T"}, Attrs: []string{"T: type", "loc: int"},
		Shape: opdef.SameShape,
	}, func(c *kernel.Construction) (kernel.Kernel, error) {
		loc := int64(c.Attrs.Int("loc"))
		return kernel.Func(func(ctx *kernel.Context) error { return writeRow(ctx, loc) }), nil
	})
}

func writeRow(ctx *kernel.Context, loc int64) error {
	value, update := ctx.Input(0), ctx.Input(1)
	switch {
	case value.Rank() == 0:
		return status.InvalidArgumentf("value should be at least rank 1.")
	case value.Rank() != update.Rank():
		return status.InvalidArgumentf("value and update shape doesn't match: %v vs. %v", value.Shape(), update.Shape())
	}
	rows, row := value.Shape()[0], value.Shape()[1:]
	switch {
	case !row.Equal(update.Shape()[1:]):
		return status.InvalidArgumentf("value and update shape doesn't match: %v vs. %v", value.Shape(), update.Shape())
	case update.Dim(0) != 1:
		return status.InvalidArgumentf("update shape doesn't match: %v", update.Shape())
	case loc < -rows || loc >= rows:
		return status.InvalidArgumentf("loc %d is not in [%d, %d)", loc, -rows, rows)
	}
	list, err := gatherscatter.NewList(1)
	if err != nil {
		return err
	}
	defer list.Release()
	list.Rows[0] = (loc + rows) % rows
	// All updates write to the memory of the same tensor, to different rows.
	gatherscatter.Scatter(elementwise.Assign, value, update, list, int(row.NumElements()))
	ctx.SetOutput(0, value.Retain())
	return nil
}
