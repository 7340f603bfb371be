package listops

import (
	"slices"

	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/opkit/stacking"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	attrs, flow := []string{"T: type"}, []string{"flow_out: float"}
	registerVersions(opdef.Def{
		Name: "TensorArrayScatter", Doc: "Writes the rows of a tensor to the given elements of a tensor array.",
		In: []string{"indices: int32", "value: T", "flow_in: float"}, Out: flow, Attrs: attrs, Shape: arrayRule(scatterShape, 1, -1, 0),
	}, onArray(scatter))
	kernel.RegisterNew(opdef.Def{
		Name: "TensorArrayUnpack", Doc: "Writes the rows of a tensor to all elements of a tensor array.",
		In: []string{"handle: Ref(string)", "value: T", "flow_in: float"}, Out: flow, Attrs: attrs, Shape: opdef.UnknownShape,
	}, onArray(unpack))
	registerVersions(opdef.Def{
		Name: "TensorArraySplit",
		Doc: "Splits a tensor along its first dimension and writes the pieces to all elements of a " +
			"tensor array.",
		In: []string{"value: T", "lengths: int64", "flow_in: float"}, Out: flow, Attrs: attrs,
		Shape: arrayRule(opdef.ScalarShape, -1, 1, 0),
	}, onArray(split))
}

func scatterShape(c *opdef.ShapeContext) error {
	if c.Op.Inputs[0].DType == tensor.Resource { // the older forms do not check the shape
		if err := checkScattered(c); err != nil {
			return err
		}
	}
	return opdef.ScalarShape(c)
}

func checkScattered(c *opdef.ShapeContext) error {
	value, err := opdef.WithRankAtLeast(c.In[2], 1)
	if err != nil {
		return err
	}
	if value.RankKnown() && c.In[1].RankKnown() {
		if _, err := opdef.MergeDims(value.Dim(0), c.In[1].Dim(0)); err != nil {
			return err
		}
	}
	if elem, ok := elemOf(c); ok && value.RankKnown() {
		_, err = opdef.MergeShapes(elem, shapefn.From(value, 1))
	}
	return err
}

// checkRows checks a value whose rows are written and returns its number of rows.
func (a *Array) checkRows(value *tensor.Tensor) (int, error) {
	if err := a.checkWritten(value.DType()); err != nil {
		return 0, err
	}
	if value.Rank() == 0 {
		return 0, status.InvalidArgumentf("Input value for unpack must be at least a vector but received shape: %v", value.Shape())
	}
	return value.Dim(0), nil
}

func scatter(ctx *kernel.Context, a *Array) error {
	value, at := ctx.Input(2), ctx.Input(1)
	n, err := a.checkRows(value)
	if err != nil {
		return err
	}
	size, dynamic, err := a.size()
	if err != nil {
		return err
	}
	if at.Rank() != 1 {
		return status.InvalidArgumentf("Expected indices to be a vector, but received shape: %v", at.Shape())
	}
	indices := tensor.Values[int32](at)
	if len(indices) != n {
		return status.InvalidArgumentf("Expected len(indices) == values.shape[0], but saw: %d vs. %d", len(indices), n)
	}
	if n > 0 {
		if last := int(slices.Max(indices)); !dynamic && last >= size {
			return status.InvalidArgumentf("Max scatter index must be < array size (%d vs. %d)", last, size)
		}
	}
	if err := a.writeRows(ctx, indices, value); err != nil {
		return err
	}
	return ctx.PassInput(3, 0)
}

func unpack(ctx *kernel.Context, a *Array) error {
	value := ctx.Input(1)
	n, err := a.checkRows(value)
	if err != nil {
		return err
	}
	size, dynamic, err := a.size()
	if err != nil {
		return err
	}
	if dynamic {
		size = max(size, n)
	}
	if n != size {
		return status.InvalidArgumentf("Input value must have first dimension equal to the array size (%d vs. %d)", n, size)
	}
	if err := a.mark(size); err != nil {
		return err
	}
	indices := membudget.Make[int32](n)
	for i := range indices {
		indices[i] = int32(i)
	}
	if err := a.writeRows(ctx, indices, value); err != nil {
		return err
	}
	return ctx.PassInput(2, 0)
}

// writeRows writes the rows of value, which share its memory.
func (a *Array) writeRows(ctx *kernel.Context, indices []int32, value *tensor.Tensor) error {
	rows := membudget.Make[tensor.Tensor](len(indices))
	for i := range rows {
		rows[i] = stacking.RowView(value, i)
	}
	defer release(rows)
	return a.writeMany(ctx, indices, rows)
}

func split(ctx *kernel.Context, a *Array) error {
	value, cut := ctx.Input(1), ctx.Input(2)
	lengths, err := checkLengths(value, cut)
	if err != nil {
		return err
	}
	size, dynamic, err := a.size()
	if err != nil {
		return err
	}
	if dynamic {
		size = max(size, len(lengths))
	}
	if size != len(lengths) {
		return status.InvalidArgumentf("TensorArray's size is not equal to the size of lengths (%d vs. %d), and the TensorArray is "+
			"not marked as dynamically resizeable", size, len(lengths))
	}
	if err := a.checkWritten(value.DType()); err != nil {
		return err
	}
	if err := a.mark(size); err != nil {
		return err
	}
	pieces, indices := membudget.Make[tensor.Tensor](len(lengths)), membudget.Make[int32](len(lengths))
	defer release(pieces)
	lo := 0
	for i, n := range lengths {
		pieces[i], indices[i] = stacking.View(value, lo, lo+int(n)), int32(i)
		lo += int(n)
	}
	if err := a.writeMany(ctx, indices, pieces); err != nil {
		return err
	}
	return ctx.PassInput(3, 0)
}

// checkLengths returns the lengths of the pieces of value. Their sum must be its first dimension.
func checkLengths(value, cut *tensor.Tensor) ([]int64, error) {
	if cut.Rank() != 1 {
		return nil, status.InvalidArgumentf("Expected lengths to be a vector, received shape: %v", cut.Shape())
	}
	lengths := tensor.Values[int64](cut)
	if value.Rank() == 0 {
		return nil, status.InvalidArgumentf("Expected value to be at least a vector, but received shape: %v", value.Shape())
	}
	total, rows := int64(0), int64(value.Dim(0))
	for _, n := range lengths {
		total += n
	}
	if total != rows {
		return nil, status.InvalidArgumentf("Expected sum of lengths to be equal to values.shape[0], but sum of lengths is %d and "+
			"value's shape is: %v", total, value.Shape())
	}
	for i, n := range lengths {
		if n < 0 || n > rows {
			return nil, status.InvalidArgumentf("length %d of piece %d is not between 0 and %d", n, i, rows)
		}
	}
	return lengths, nil
}
