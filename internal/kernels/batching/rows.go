package batching

import (
	"slices"

	"github.com/weft-ml/weft/internal/opkit/stacking"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// rowsOf returns rows lo to hi of tensors.
func rowsOf(all []tensor.Tensor, lo, hi int) []tensor.Tensor {
	out := membudget.Make[tensor.Tensor](len(all))
	for i := range all {
		out[i] = stacking.View(&all[i], lo, hi)
	}
	return out
}

// concat concatenates column c of rows of tensors, followed by padding copies of the first row.
func concat(rows [][]tensor.Tensor, c, padding int) (tensor.Tensor, error) {
	first := &rows[0][c]
	total := padding
	for _, row := range rows {
		t := &row[c]
		if t.DType() != first.DType() || t.Rank() == 0 || !t.Shape()[1:].Equal(first.Shape()[1:]) {
			return tensor.Tensor{}, status.InvalidArgumentf("Batching needs tensors of one type and of rows of one shape, got %v of shape %v and %v "+
				"of shape %v", first.DType(), first.Shape(), t.DType(), t.Shape())
		}
		total += t.Dim(0)
	}
	if padding > 0 && first.Dim(0) == 0 {
		return tensor.Tensor{}, status.InvalidArgumentf("Cannot use an empty tensor with zero rows as padding when batching. (Input %d got shape %v.)",
			c, first.Shape())
	}
	out, err := tensor.Alloc(first.DType(), slices.Concat(tensor.Shape{int64(total)}, first.Shape()[1:]))
	if err != nil {
		return out, err
	}
	at := 0
	for _, row := range rows {
		stacking.SetRows(&out, at, &row[c])
		at += row[c].Dim(0)
	}
	if padding > 0 {
		row := stacking.View(first, 0, 1)
		defer row.Release()
		for ; at < total; at++ {
			stacking.SetRows(&out, at, &row)
		}
	}
	return out, nil
}
