package ragged

import (
	"slices"

	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "RaggedTensorToTensor", Doc: "Converts a ragged tensor to a dense tensor. Truncates rows, or pads them with a default value.",
			In:    []string{"shape: Tshape", "values: T", "default_value: T", "row_partition_tensors: num_row_partition_tensors * Tindex"},
			Out:   []string{"result: T"},
			Attrs: []string{"T: type", "Tindex: {int64, int32}", "Tshape: {int64, int32}", "num_row_partition_tensors: int >= 1", "row_partition_types: list(string)"},
			Shape: toTensorShape,
		},
		Kernels: kernel.ForTypes("T", newToTensor, movable...),
	})
}

// Supported kinds of row partitions: number of rows, row of each value, and starts of rows.
const (
	firstDimSize = "FIRST_DIM_SIZE"
	valueRowIDs  = "VALUE_ROWIDS"
	rowSplits    = "ROW_SPLITS"
)

// partitionKinds lists all kinds of TensorFlow.
var partitionKinds = []string{firstDimSize, valueRowIDs, "ROW_LENGTHS", rowSplits, "ROW_LIMITS", "ROW_STARTS"}

func checkKinds(attrs opdef.Attrs) ([]string, error) {
	kinds := attrs.Strings("row_partition_types")
	for _, k := range kinds {
		if !slices.Contains(partitionKinds, k) {
			return nil, status.InvalidArgumentf("Unknown string for partition info type: %s", k)
		}
	}
	for i, k := range kinds {
		switch {
		case k != firstDimSize && k != valueRowIDs && k != rowSplits:
			return nil, status.InvalidArgumentf("Unsupported partition type: %s", k)
		case i > 0 && k == firstDimSize:
			return nil, status.InvalidArgumentf("FIRST_DIM_SIZE must be first")
		}
	}
	n := attrs.Int("num_row_partition_tensors")
	switch {
	case len(kinds) == 0:
		return nil, status.InvalidArgumentf("Partition info types should not be empty")
	case kinds[0] == firstDimSize && (len(kinds) < 2 || kinds[1] != valueRowIDs):
		return nil, status.InvalidArgumentf("FIRST_DIM_SIZE must be followed by VALUE_ROWIDS")
	case kinds[0] == valueRowIDs:
		return nil, status.InvalidArgumentf("VALUE_ROWIDS cannot be first")
	case n != len(kinds):
		return nil, status.InvalidArgumentf("Number of row partition tensors (%d) does not equal the number of row partition types(%d).", n, len(kinds))
	}
	return kinds, nil
}

// raggedRank returns the number of ragged dimensions for partitions of the given kinds.
func raggedRank(kinds []string) int {
	if kinds[0] == firstDimSize {
		return len(kinds) - 1
	}
	return len(kinds)
}

func toTensorShape(c *opdef.ShapeContext) error {
	kinds, err := checkKinds(c.Attrs)
	if err != nil {
		return err
	}
	for i, k := range kinds {
		switch s := c.In[3+i]; {
		case !s.RankKnown():
		case k == firstDimSize && s.Rank() != 0:
			return status.InvalidArgumentf("FIRST_DIM_SIZE must be a scalar.")
		case k != firstDimSize && s.Rank() != 1:
			return status.InvalidArgumentf("Row partition must be a vector.")
		}
	}
	if err := checkDefault(c.In[2], c.In[1]); err != nil {
		return err
	}
	want := shapefn.Shape{}
	if c.In[0].Rank() != 0 {
		if want, err = shapefn.Input(c, 0); err != nil {
			return err
		}
	}
	c.Out[0], err = denseShape(raggedRank(kinds), want, c.In[1])
	return err
}

// checkDefault checks that a default can be broadcast to a value.
func checkDefault(fill, values shapefn.Shape) error {
	if !fill.RankKnown() || !values.RankKnown() {
		return nil
	}
	incompatible := func(format string, args ...any) error {
		return status.InvalidArgumentf("default_value.shape=%v and rt_input.flat_values.shape=%v are incompatible: "+format,
			slices.Concat([]any{fill, values}, args)...)
	}
	n, m := fill.Rank(), values.Rank()
	if n >= m {
		return incompatible("default_value.rank = %d  must be less than rt_input.flat_values.rank = %d", n, m)
	}
	for i := range n {
		if d, v := fill.Dim(i), values.Dim(i+1); d >= 0 && v >= 0 && d != 1 && d != v {
			return incompatible("default_value.shape[%d] = %d but rt_input.flat_values.shape[%d] = %d", i-n, d, i-n, v)
		}
	}
	return nil
}

// denseShape returns the shape of the result, as far as the requested shape and the shape of the
// values determine it.
func denseShape(rank int, want, values shapefn.Shape) (shapefn.Shape, error) {
	if !values.RankKnown() {
		return want, nil
	}
	if !want.RankKnown() {
		want = tensor.UnknownDims(rank + values.Rank())
		for i := 1; i < values.Rank(); i++ {
			want = shapefn.Replace(want, rank+i, values.Dim(i))
		}
		return want, nil
	}
	if rank+values.Rank() != want.Rank() {
		return want, status.InvalidArgumentf("rt_input.shape and shape=%v are incompatible: rt_input.rank = %d but shape.rank = %d",
			want, rank+values.Rank(), want.Rank())
	}
	out := want
	for i := 1; i < values.Rank(); i++ {
		v, d := values.Dim(i), want.Dim(rank+i)
		switch {
		case v >= 0 && d >= 0 && v != d:
			return want, status.InvalidArgumentf("rt_input.shape and shape=%v are incompatible: rt_input.shape[%d] = %d but shape[%d] = %d",
				want, rank+i, v, rank+i, d)
		case v >= 0:
			out = shapefn.Replace(out, rank+i, v)
		}
	}
	return out, nil
}

func newToTensor(c *kernel.Construction) (kernel.Kernel, error) {
	kinds, err := checkKinds(c.Attrs)
	return kernel.Func(func(ctx *kernel.Context) error { return toTensor(ctx, kinds) }), err
}

// partition is one level of rows. It holds either row splits or the row of each value.
type partition struct {
	splits, rowids []int64
}

func toTensor(ctx *kernel.Context, kinds []string) error {
	values, fill := ctx.Input(1), ctx.Input(2)
	first, levels, err := partitions(ctx, kinds)
	if err != nil {
		return err
	}
	dims, err := resultDims(ctx, first, levels)
	if err != nil {
		return err
	}
	out, err := ctx.Allocate(0, dims)
	if err != nil || out.NumElements() == 0 {
		return err
	}
	at, err := positions(first, levels, dims)
	if err != nil {
		return err
	}
	rows := dims[:len(levels)+1].NumElements()
	from := membudget.Make[int64](rows) // index of the value of each result row
	for i := range from {
		from[i] = -1
	}
	for i, row := range at[:min(len(at), values.Dim(0))] {
		if row >= 0 {
			from[row] = int64(i)
		}
	}
	return putDense(out, values, fill, dims[len(levels)+1:], from)
}

// partitions reads the partitions and the size of the first dimension.
func partitions(ctx *kernel.Context, kinds []string) (first int64, levels []partition, err error) {
	t := ctx.Input(3)
	if t.NumElements() == 0 {
		return 0, nil, status.InvalidArgumentf("Invalid first partition input. Tensor requires at least one element.")
	}
	if first = int64(t.NumElements() - 1); kinds[0] == firstDimSize {
		first = intarg.Scalar(t)
	}
	for i, k := range kinds {
		v := intarg.Values(ctx.Input(3 + i))
		switch k {
		case rowSplits:
			if len(v) > 0 && (v[0] != 0 || !slices.IsSorted(v)) {
				return 0, nil, status.InvalidArgumentf("Invalid row split size.")
			}
			//sizedmake:ok part of an attribute
			levels = append(levels, partition{splits: v})
		case valueRowIDs:
			//sizedmake:ok part of an attribute
			levels = append(levels, partition{rowids: v})
		}
	}
	return first, levels, nil
}

// width returns the largest number of values in a row.
func (p partition) width() (most int64) {
	for i := 1; i < len(p.splits); i++ {
		most = max(most, p.splits[i]-p.splits[i-1])
	}
	run := int64(0)
	for i, row := range p.rowids {
		if i > 0 && row != p.rowids[i-1] {
			run = 0
		}
		run++
		most = max(most, run)
	}
	return most
}

// resultDims returns the shape of the result.
func resultDims(ctx *kernel.Context, first int64, levels []partition) (tensor.Shape, error) {
	values, want := ctx.Input(1), ctx.Input(0)
	if values.Rank() == 0 {
		return nil, status.InvalidArgumentf("rt_input.flat_values must have at least one dimension")
	}
	if err := checkDefault(ctx.Input(2).Shape().Partial(), values.Shape().Partial()); err != nil {
		return nil, err
	}
	asked := shapefn.Shape{}
	switch want.Rank() {
	case 0:
		if v := intarg.Scalar(want); v != -1 {
			return nil, status.InvalidArgumentf("The only valid scalar shape tensor is the fully unknown shape specified as -1.")
		}
	case 1:
		var err error
		if asked, err = shapefn.FromDims(intarg.Values(want)); err != nil {
			return nil, err
		}
	default:
		return nil, status.InvalidArgumentf("Shape must be at most rank 1 but is rank %d", want.Rank())
	}
	known, err := denseShape(len(levels), asked, values.Shape().Partial())
	if err != nil {
		return nil, err
	}
	dims := known.Dims()
	if dims[0] < 0 {
		dims[0] = first
	}
	for i, p := range levels {
		if dims[i+1] < 0 {
			dims[i+1] = p.width()
		}
	}
	return intarg.Shape(dims)
}

// positions returns, for every value of the innermost level, its row in the result, or -1 if it is
// truncated. A row is an element of the dimensions up to the innermost level.
func positions(first int64, levels []partition, dims tensor.Shape) (at []int64, err error) {
	outer := dims[1 : len(levels)+1].NumElements()
	rows, parent := first, func(i int64) int64 {
		if i < dims[0] {
			return i * outer
		}
		return -1
	}
	for d, p := range levels {
		step := dims[d+2 : len(levels)+1].NumElements()
		if p.splits != nil {
			at, err = p.spread(rows, parent, step, dims[d+1])
		} else {
			at, err = p.assign(rows, parent, step, dims[d+1])
		}
		if err != nil {
			return nil, err
		}
		above := at
		rows, parent = int64(len(above)), func(i int64) int64 { return above[i] }
	}
	return at, nil
}

// spread returns the positions of the values of a level with row splits. Consecutive values of a
// row are step apart, and at most width of them fit.
func (p partition) spread(rows int64, parent func(int64) int64, step, width int64) ([]int64, error) {
	if n := int64(len(p.splits) - 1); n > rows {
		return nil, status.InvalidArgumentf("Row partition size is greater than output size: %d > %d", n, rows)
	}
	var at []int64
	for i := range len(p.splits) - 1 {
		start := parent(int64(i))
		for j := range p.splits[i+1] - p.splits[i] {
			if start < 0 || j >= width {
				at = membudget.Append(at, -1)
			} else {
				at = membudget.Append(at, start+j*step)
			}
		}
	}
	return at, nil
}

// assign returns the positions of the values of a level with row ids.
func (p partition) assign(rows int64, parent func(int64) int64, step, width int64) ([]int64, error) {
	at := membudget.Make[int64](len(p.rowids))
	column := int64(0)
	for i, row := range p.rowids {
		if i > 0 && row == p.rowids[i-1] {
			column++
		} else {
			column = 0
		}
		if row < 0 || row >= rows {
			which := "next"
			if i == 0 {
				which = "current"
			}
			return nil, status.InvalidArgumentf("Got %s_value_rowid=%d which is not less than %d", which, row, rows)
		}
		if at[i] = parent(row); at[i] >= 0 {
			if at[i] += column * step; column >= width {
				at[i] = -1
			}
		}
	}
	return at, nil
}

// putDense sets row i of out to value from[i]. If from[i] is negative, it sets the row to the
// default, broadcast to elem, the shape of a value.
func putDense(out, values, fill *tensor.Tensor, elem tensor.Shape, from []int64) error {
	width := int(elem.NumElements())
	if slices.Contains(from, -1) {
		one, err := tensor.Alloc(fill.DType(), elem)
		if err != nil {
			return err
		}
		defer one.Release()
		for i, at := range elementwise.Offsets(elem, fill.Shape()) {
			copyElements(&one, i, fill, at, at+1)
		}
		repeat(out, &one)
	}
	gather(out, values, from, width)
	return nil
}
