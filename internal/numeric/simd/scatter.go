package simd

import "unsafe"

var (
	scatterRows  levels[func(dst, src *float32, list *int64, rows, words int)]
	scatterAdd32 levels[func(dst, src *float32, to, from *int64, rows, cols int)]
	scatterAdd64 levels[func(dst, src *float64, to, from *int64, rows, cols int)]
)

// Scatter sets row list[i] of dst to row i of src, in order. Rows have width elements. All listed
// rows must exist.
func Scatter[E uint32 | uint64](dst, src []E, list []int64, width int) {
	if width == 0 {
		return
	}
	i, l := 0, Current()
	if words := width * int(unsafe.Sizeof(E(0))) / 4; l != Generic && scatterRows[l-1] != nil && words >= 4 {
		step, end := max(1, piece/words), len(list)-fetchAhead
		for ; i < end; i += step {
			n := min(step, end-i)
			scatterRows[l-1](word[float32](&dst[0]), word[float32](&src[i*width]), &list[i], n, words)
		}
		i = max(0, end)
	}
	for ; i < len(list); i++ {
		copy(dst[int(list[i])*width:][:width], src[i*width:])
	}
}

// ScatterAdd adds row from[i] of src to row to[i] of dst, in order. Rows have width elements. All
// listed rows must exist.
func ScatterAdd[T Float](dst, src []T, to, from []int64, width int) {
	from = from[:len(to)]
	if width == 0 {
		return
	}
	i := 0
	if l := Current(); l != Generic && scatterAdd32[l-1] != nil {
		step, end := max(1, piece/width), len(to)-fetchAhead
		for ; i < end; i += step {
			n := min(step, end-i)
			if isFloat32[T]() {
				scatterAdd32[l-1](asPtr[float32](&dst[0]), asPtr[float32](&src[0]), &to[i], &from[i], n, width)
			} else {
				scatterAdd64[l-1](asPtr[float64](&dst[0]), asPtr[float64](&src[0]), &to[i], &from[i], n, width)
			}
		}
		i = max(0, end)
	}
	for ; i < len(to); i++ {
		row := dst[int(to[i])*width:][:width]
		Add(row, row, src[int(from[i])*width:])
	}
}
