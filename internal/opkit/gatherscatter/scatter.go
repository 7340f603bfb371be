package gatherscatter

import (
	"cmp"
	"slices"

	"github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/internal/numeric/simd"
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/sys/bulk"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Scatter combines row list[i] of dst, of width elements, with row i of updates, or with the only
// element of updates if it is a scalar. Rows that are listed several times are combined in list
// order.
func Scatter(op elementwise.Op, dst, updates *tensor.Tensor, l List, width int) {
	if d := device.Of(dst); d != nil {
		scatterOnDevice(op, d, dst, updates, l, int64(width))
		return
	}
	if len(l.Rows) == 0 || width == 0 {
		return
	}
	if op == elementwise.Assign {
		move{list: l.Rows, layout: Layout{Width: width}, scatter: true}.run(dst, updates)
		return
	}
	if op == elementwise.Add && dst.DType() == tensor.String {
		concatenate(tensor.Values[string](dst), tensor.Values[string](updates), l.Rows, width)
		return
	}
	elementwise.AccumulateRows(op, dst, updates, l.Rows, width)
}

// concatenate appends updates to the listed rows of dst. Each text is written once: to append the
// updates of a row one by one would take the square of their number. It panics as [membudget.Make]
// does, because texts may share their memory.
func concatenate(dst, updates []string, list []int64, width int) {
	order := membudget.Make[int](len(list))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(list[a], list[b]), cmp.Compare(a, b)) })
	single := len(updates) == 1
	var meter membudget.Meter
	for len(order) > 0 {
		row, n := list[order[0]], 1
		for n < len(order) && list[order[n]] == row {
			n++
		}
		if row >= 0 {
			parts := membudget.Make[string](n + 1)
			for k := range width {
				text := &dst[int(row)*width+k]
				parts[0] = *text
				for i, update := range order[:n] {
					if single {
						parts[i+1] = updates[0]
					} else {
						parts[i+1] = updates[update*width+k]
					}
				}
				*text = meter.Join(parts, "")
			}
		}
		order = order[n:]
	}
}

// assign sets row list[i] of dst to row i of updates.
func assign[E any](dst, updates []E, list []int64, width int) {
	scalar := len(updates) == 1 && len(list)*width != 1
	if width == 1 && !scalar {
		for i, row := range list {
			if row >= 0 {
				dst[row] = updates[i]
			}
		}
		return
	}
	if !scalar && !slices.Contains(list, skipped) && scatterWords(dst, updates, list, width) {
		return
	}
	for i, row := range list {
		if row < 0 {
			continue
		}
		out := dst[int(row)*width : (int(row)+1)*width]
		if !scalar {
			bulk.SafePoint()
			copy(out, updates[i*width:])
			continue
		}
		for k := range out {
			out[k] = updates[0]
		}
	}
}

// scatterWords copies rows with vector code. It reports false if there is none for the type.
func scatterWords[E any](dst, updates []E, list []int64, width int) bool {
	switch dst := any(dst).(type) {
	case []uint32:
		simd.Scatter(dst, any(updates).([]uint32), list, width)
	case []uint64:
		simd.Scatter(dst, any(updates).([]uint64), list, width)
	default:
		return false
	}
	return true
}

// Add adds row from[i] of src to row to[i] of dst, in order. Rows have width elements.
func Add[T tensor.Elem](dst, src []T, to, from []int64, width int) {
	switch d := any(dst).(type) {
	case []float32:
		simd.ScatterAdd(d, any(src).([]float32), to, from, width)
	case []float64:
		simd.ScatterAdd(d, any(src).([]float64), to, from, width)
	default:
		add := elementwise.Arithmetic[T](elementwise.Add)
		for i, at := range to {
			row := dst[int(at)*width:][:width]
			add(row, row, src[int(from[i])*width:])
		}
	}
}

// Column returns indices as index vectors that each select a slice. The elements of a vector become
// vectors of one element.
func Column(indices *tensor.Tensor) (*tensor.Tensor, error) {
	if indices.Rank() != 1 {
		return indices, nil
	}
	column, err := indices.WithShape(tensor.Shape{int64(indices.NumElements()), 1})
	return &column, err
}

// CheckUpdates checks that the shapes of indices and updates fit a scatter by index vectors into a
// tensor of the given shape.
func CheckUpdates(indices, updates *tensor.Tensor, shape tensor.Shape) error {
	switch {
	case len(shape) < 1:
		return status.InvalidArgumentf("Output must be at least 1-D, got shape: %v", shape)
	case indices.Rank() < 1:
		return status.InvalidArgumentf("Indices shape must have rank at least one. Found:%v", indices.Shape())
	case shape.NumElements() == 0 && (indices.NumElements() > 0 || updates.NumElements() > 0):
		return status.InvalidArgumentf("Indices and updates specified for empty output.  indices shape: %v", indices.Shape())
	}
	if indices.Rank() > 1 && updates.Rank() > 0 && updates.Dim(0) != indices.Dim(0) {
		return status.InvalidArgumentf("Dimensions [0,1) of indices[shape=%v] = %d must match dimensions [0,1) of updates[shape=%v] = %d",
			indices.Shape(), indices.Dim(0), updates.Shape(), updates.Dim(0))
	}
	outer := indices.Rank() - 1
	depth := indices.Dim(outer)
	if updates.Rank() < outer || !updates.Shape()[:outer].Equal(indices.Shape()[:outer]) {
		return status.InvalidArgumentf("Dimensions [0,%d) of indices[shape=%v] must match dimensions [0,%d) of updates[shape=%v]",
			outer, indices.Shape(), outer, updates.Shape())
	}
	if depth > len(shape) || !updates.Shape()[outer:].Equal(shape[depth:]) {
		return status.InvalidArgumentf("Dimensions [%d,%d) of input[shape=%v] must match dimensions [%d,%d) of updates[shape=%v]",
			depth, len(shape), shape, outer, updates.Rank(), updates.Shape())
	}
	return nil
}

// ScatterVectors combines updates with the slices of dst that the index vectors in the last
// dimension of indices select. The caller has checked the shapes with CheckUpdates. With skip,
// vectors out of range are skipped.
func ScatterVectors(op elementwise.Op, dst, indices, updates *tensor.Tensor, skip bool) error {
	if dst.NumElements() == 0 {
		return nil
	}
	outer := indices.Rank() - 1
	depth := indices.Dim(outer)
	list, bad, err := ReadVectors(indices, dst.Shape()[:depth], skip)
	defer list.Release()
	if err != nil {
		return err
	}
	if bad >= 0 {
		return status.InvalidArgumentf("indices%s = [%s] does not index into shape %v",
			intarg.Position(indices.Shape()[:outer], bad), Vector(indices, bad), dst.Shape())
	}
	Scatter(op, dst, updates, list, int(dst.Shape()[depth:].NumElements()))
	return nil
}
