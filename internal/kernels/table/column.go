package table

import (
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/internal/opkit/gatherscatter"
	"github.com/weft-ml/weft/internal/opkit/resource"
	"github.com/weft-ml/weft/internal/opkit/stacking"
	"github.com/weft-ml/weft/internal/opkit/strided"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/tensor"
)

// column holds values, one row of elements each.
type column struct {
	// [room, width]; shared with exported tensors, so it is copied before it changes
	t tensor.Tensor
	n int // rows in use
}

// newColumn returns a column with the given capacity and no rows in use. The account pays for it.
func newColumn(a *membudget.Account, dtype tensor.DType, room int, width int64) (column, error) {
	t, err := resource.Zeros(a, dtype, tensor.Shape{int64(room), width})
	return column{t: t}, err
}

func (c *column) width() int { return c.t.Dim(1) }

// reserve ensures capacity for n rows.
func (c *column) reserve(a *membudget.Account, n int) error {
	room := c.t.Dim(0)
	if n <= room {
		return nil
	}
	return c.resize(a, max(n, 2*room))
}

// minShrunk is the smallest capacity, in rows, that is reduced when rows are removed.
const minShrunk = 4096

// isSparse reports whether so few rows are in use that the column should shrink.
func (c *column) isSparse() bool { return c.t.Dim(0) >= minShrunk && c.n <= c.t.Dim(0)/4 }

// resize moves the rows in use to memory for the given number of rows.
func (c *column) resize(a *membudget.Account, room int) error {
	other, err := newColumn(a, c.t.DType(), room, int64(c.width()))
	if err != nil {
		return err
	}
	used := c.t.Rows(0, c.n)
	stacking.SetRows(&other.t, 0, &used)
	c.t.Release()
	c.t = other.t
	return nil
}

// own copies the rows if they are shared. It must be called before any row changes.
func (c *column) own(a *membudget.Account) error {
	if c.t.Exclusive() || !isCounted(&c.t) {
		return nil
	}
	return c.resize(a, c.t.Dim(0))
}

// set stores values in the listed rows, in the order of the list. It returns the number of bytes of
// strings that it has replaced.
func (c *column) set(l gatherscatter.List, values *tensor.Tensor) (freed int64) {
	if c.t.DType() != tensor.String {
		gatherscatter.Scatter(elementwise.Assign, &c.t, values, l, c.width())
		return 0
	}
	rows, from, width := tensor.Values[string](&c.t), tensor.Values[string](values), c.width()
	for i, row := range l.Rows {
		for j := range width {
			at := &rows[int(row)*width+j]
			freed += int64(len(*at))
			*at = from[i*width+j]
		}
	}
	return freed
}

// get sets out to the listed rows. Where an index is negative it uses a default value: row i of
// defaults if there is one for each key and perKey is true, otherwise the first.
func (c *column) get(out, defaults *tensor.Tensor, l gatherscatter.List, perKey bool) {
	width := c.width()
	gatherscatter.Gather(out, &c.t, l, gatherscatter.Layout{Outer: 1, Rows: c.t.Dim(0), Width: width})
	step := 0
	if perKey && defaults.NumElements() == out.NumElements() {
		step = width
	}
	fill(out, defaults, l.Rows, width, step)
}

// fill sets the rows of out with a negative index: row i is set to the elements of defaults from
// i*step on.
func fill(out, defaults *tensor.Tensor, list []int64, width, step int) {
	switch dtype := out.DType(); dtype {
	case tensor.String:
		fillOf(tensor.Values[string](out), tensor.Values[string](defaults), list, width, step)
	case tensor.Resource:
		fillOf(tensor.Values[*tensor.Handle](out), tensor.Values[*tensor.Handle](defaults), list, width, step)
	case tensor.Variant:
		fillOf(tensor.Values[tensor.VariantValue](out), tensor.Values[tensor.VariantValue](defaults), list, width, step)
	default:
		size := dtype.Size()
		fillOf(out.Bytes(), defaults.Bytes(), list, width*size, step*size)
	}
}

func fillOf[E any](out, defaults []E, list []int64, width, step int) {
	for i, row := range list {
		if row < 0 {
			copy(out[i*width:(i+1)*width], defaults[i*step:])
		}
	}
}

// drop removes a row and moves the last row to its position. It returns the number of bytes of
// strings in the row.
func (c *column) drop(row int) (freed int64) {
	last := c.n - 1
	width := c.width()
	if c.t.DType() == tensor.String {
		for _, s := range tensor.Values[string](&c.t)[row*width : (row+1)*width] {
			freed += int64(len(s))
		}
	}
	strided.CopyRows(&c.t, strided.Rows{Offset: row * width}, &c.t, strided.Rows{Offset: last * width}, 1, width)
	if c.t.DType() == tensor.String {
		clear(tensor.Values[string](&c.t)[last*width : (last+1)*width]) // free the text
	}
	c.n = last
	return freed
}

// export returns the rows in use as a tensor of the given shape, which may share their memory.
func (c *column) export(shape tensor.Shape) (tensor.Tensor, error) {
	view := c.t.Rows(0, c.n)
	t, err := view.WithShape(shape)
	if err != nil {
		return t, err
	}
	return share(&t)
}

// isCounted reports whether the buffer of a tensor counts its references. Strings, handles and
// variants are not counted, so a table never shares them: it could not tell when to change them.
func isCounted(t *tensor.Tensor) bool { return t.DType().Size() > 0 }

// share returns a reference to a tensor, or a copy if references are not counted.
func share(t *tensor.Tensor) (tensor.Tensor, error) {
	if isCounted(t) {
		return t.Retain(), nil
	}
	return t.Clone()
}
