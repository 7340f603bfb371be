package checkpoint

import "github.com/weft-ml/weft/tensor"

// copyOverlap copies the common elements of two slices of a tensor: from src, which holds the slice
// from, to dst, which holds the slice to. All extents have non-negative lengths. It returns the
// number of elements.
func copyOverlap(dst *tensor.Tensor, to Slice, src *tensor.Tensor, from Slice) int64 {
	common, ok := to.intersect(from)
	if !ok {
		return 0
	}
	n := int64(1)
	for _, e := range common {
		n *= e.Length
	}
	if dst.DType() == tensor.String {
		copyRows(tensor.Values[string](dst), to, tensor.Values[string](src), from, common, 1)
		return n
	}
	copyRows(dst.Bytes(), to, src.Bytes(), from, common, dst.DType().Size())
	return n
}

// copyRows copies the common rows of the innermost dimension. An element consists of width values
// of type T.
func copyRows[T any](dst []T, to Slice, src []T, from, common Slice, width int) {
	rank := len(common)
	if rank == 0 {
		copy(dst, src)
		return
	}
	last := rank - 1
	index := make([]int64, last) // position within common
	row := int(common[last].Length) * width
	for {
		d, s := int64(0), int64(0)
		for i := range rank {
			at := common[i].Start
			if i < last {
				at += index[i]
			}
			d = d*to[i].Length + at - to[i].Start
			s = s*from[i].Length + at - from[i].Start
		}
		copy(dst[int(d)*width:][:row], src[int(s)*width:])
		i := last - 1
		for ; i >= 0; i-- {
			if index[i]++; index[i] < common[i].Length {
				break
			}
			index[i] = 0
		}
		if i < 0 {
			return
		}
	}
}
