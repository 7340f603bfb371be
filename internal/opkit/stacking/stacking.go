// Package stacking splits tensors along their outermost dimension and stacks tensors of one shape
// along a new one.
package stacking

import (
	"slices"

	"github.com/weft-ml/weft/internal/opkit/strided"
	"github.com/weft-ml/weft/tensor"
)

// Row returns a copy of row i of t, which has the shape of t without its outermost dimension.
func Row(t *tensor.Tensor, i int) (tensor.Tensor, error) {
	row, err := tensor.Alloc(t.DType(), t.Shape()[1:])
	if err != nil {
		return row, err
	}
	n := row.NumElements()
	strided.CopyRows(&row, strided.Rows{}, t, strided.Rows{Offset: i * n}, 1, n)
	return row, nil
}

// SetRow copies row to row i of dst. row has the type and row shape of dst.
func SetRow(dst *tensor.Tensor, i int, row *tensor.Tensor) {
	n := row.NumElements()
	strided.CopyRows(dst, strided.Rows{Offset: i * n}, row, strided.Rows{}, 1, n)
}

// SetRows copies the rows of src to dst from row lo on. src has the type and row shape of dst.
func SetRows(dst *tensor.Tensor, lo int, src *tensor.Tensor) {
	if n := src.NumElements(); n > 0 {
		strided.CopyRows(dst, strided.Rows{Offset: lo * (n / src.Dim(0))}, src, strided.Rows{}, 1, n)
	}
}

// Stack returns a tensor of len(rows) rows, which all have the given type and shape.
func Stack(dtype tensor.DType, shape tensor.Shape, rows []tensor.Tensor) (tensor.Tensor, error) {
	out, err := tensor.AllocShared(dtype, slices.Concat(tensor.Shape{int64(len(rows))}, shape))
	if err != nil {
		return out, err
	}
	for i := range rows {
		SetRow(&out, i, &rows[i])
	}
	return out, nil
}

// Pad returns a tensor of len(rows) rows with the given row shape. An unknown dimension has the
// size of the largest row. Rows have shapes compatible with the given one and are padded with zeros
// at the end of each dimension.
func Pad(dtype tensor.DType, shape tensor.PartialShape, rows []tensor.Tensor) (tensor.Tensor, error) {
	dims := slices.Concat(tensor.Shape{int64(len(rows))}, shape.Dims())
	for i := range dims[1:] {
		if dims[1+i] != tensor.UnknownDim {
			continue
		}
		dims[1+i] = 0
		for r := range rows {
			dims[1+i] = max(dims[1+i], int64(rows[r].Dim(i)))
		}
	}
	out, err := tensor.Zeros(dtype, dims)
	if err != nil || out.NumElements() == 0 {
		return out, err
	}
	for r := range rows {
		if row := &rows[r]; row.NumElements() > 0 {
			strided.Copy(&out, corner(dims, r, row.Shape()), row, strided.Of(row.Shape()))
		}
	}
	return out, nil
}

// corner returns the view of those elements of row r whose indices are within a shape.
func corner(dims tensor.Shape, r int, within tensor.Shape) strided.View {
	v := strided.Of(dims)
	v.Slice(0, r, 1, 1)
	v = v.Drop(0)
	for axis, n := range within {
		v.Slice(axis, 0, int(n), 1)
	}
	return v
}

// View returns rows lo to hi of t. It shares their memory and holds a reference of its own.
func View(t *tensor.Tensor, lo, hi int) tensor.Tensor {
	rows := t.Rows(lo, hi)
	return rows.Retain()
}

// RowView returns row i of t without the outermost dimension. It shares the row's memory and holds
// a reference of its own.
func RowView(t *tensor.Tensor, i int) tensor.Tensor {
	rows := t.Rows(i, i+1)
	row, err := rows.WithShape(t.Shape()[1:])
	if err != nil {
		panic(err) // unreachable: the number of elements is unchanged
	}
	return row.Retain()
}
