package simd

import "unsafe"

var gatherRows levels[func(dst, src *float32, list *int64, rows, words int)]

// fetchAhead is the distance, in rows of the list, at which the assembly prefetches.
const fetchAhead = 8

// Gather sets row i of dst to row list[i] of src. Rows have width elements. All listed rows must
// exist.
func Gather[E uint32 | uint64](dst, src []E, list []int64, width int) {
	if width == 0 {
		return
	}
	i, l := 0, Current()
	if words := width * int(unsafe.Sizeof(E(0))) / 4; l != Generic && gatherRows[l-1] != nil && words >= 4 {
		step, end := max(1, piece/words), len(list)-fetchAhead
		for ; i < end; i += step {
			n := min(step, end-i)
			gatherRows[l-1](word[float32](&dst[i*width]), word[float32](&src[0]), &list[i], n, words)
		}
		i = max(0, end)
	}
	for ; i < len(list); i++ {
		copy(dst[i*width:(i+1)*width], src[int(list[i])*width:])
	}
}
