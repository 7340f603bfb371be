package table

import (
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/internal/opkit/gatherscatter"
	"github.com/weft-ml/weft/internal/opkit/stacking"
	"github.com/weft-ml/weft/internal/opkit/strided"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/tensor"
)

// column holds values, one row of elements each.
type column struct {
	// [room, width]; shared with exported tensors, so it is copied before it changes
	t tensor.Tensor
	n int // rows in use
}

// newColumn returns a column with the given capacity and no rows in use.
func newColumn(dtype tensor.DType, room int, width int64) (column, error) {
	t, err := tensor.Zeros(dtype, tensor.Shape{int64(room), width})
	return column{t: t}, err
}

func (c *column) width() int { return c.t.Dim(1) }

// reserve ensures capacity for n rows.
func (c *column) reserve(n int) error {
	room := c.t.Dim(0)
	if n <= room {
		return nil
	}
	bigger, err := newColumn(c.t.DType(), max(n, 2*room), int64(c.width()))
	if err != nil {
		return err
	}
	stacking.SetRows(&bigger.t, 0, &c.t)
	c.t.Release()
	c.t = bigger.t
	return nil
}

// own copies the rows if they are shared. It must be called before any row changes.
func (c *column) own() error {
	_, err := kernel.Writable(&c.t)
	return err
}

// set stores values in the listed rows, in the order of the list.
func (c *column) set(l gatherscatter.List, values *tensor.Tensor) {
	gatherscatter.Scatter(elementwise.Assign, &c.t, values, l, c.width())
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

// drop removes a row and moves the last row to its position.
func (c *column) drop(row int) {
	last := c.n - 1
	width := c.width()
	strided.CopyRows(&c.t, strided.Rows{Offset: row * width}, &c.t, strided.Rows{Offset: last * width}, 1, width)
	c.n = last
}

// export returns the rows in use as a tensor of the given shape, which shares their memory.
func (c *column) export(shape tensor.Shape) (tensor.Tensor, error) {
	view := c.t.Rows(0, c.n)
	t, err := view.WithShape(shape)
	if err != nil {
		return t, err
	}
	return t.Retain(), nil
}
