package simd

import (
	"unsafe"

	"github.com/weft-ml/weft/internal/sys/bulk"
)

var (
	copyRows levels[func(dst, src *byte, dstStride, srcStride, rows, size int)]
	reverse  levels[func(dst, src *float32, n int)]
)

// copyBytes is the number of bytes that one call of the assembly copies.
const copyBytes = 64 << 10

// Plain is the constraint of elements without pointers.
type Plain interface {
	uint8 | uint16 | uint32 | uint64 | float32 | float64 | complex128
}

// CopyRows copies n rows of size elements. Row i of dst starts at d + i*dStride, and that of src at
// s + i*sStride.
func CopyRows[E Plain](dst []E, d, dStride int, src []E, s, sStride, n, size int) {
	width := int(unsafe.Sizeof(*new(E)))
	bytes := size * width
	if bytes > largeRow {
		copyLarge(dst, d, dStride, src, s, sStride, n, size)
		return
	}
	if l := Current(); l != Generic && copyRows[l-1] != nil && bytes >= 4 && n*bytes >= 64 {
		last := n - 1
		_, _ = dst[min(d, d+last*dStride):max(d, d+last*dStride)+size], src[min(s, s+last*sStride):max(s, s+last*sStride)+size]
		for step := max(1, copyBytes/bytes); n > 0; n -= step {
			bulk.SafePoint()
			copyRows[l-1]((*byte)(unsafe.Pointer(&dst[d])), (*byte)(unsafe.Pointer(&src[s])), dStride*width, sStride*width, min(step, n), bytes)
			d, s = d+step*dStride, s+step*sStride
		}
		return
	}
	for range n {
		copy(dst[d:d+size], src[s:s+size])
		d, s = d+dStride, s+sStride
	}
}

// largeRow is the size in bytes from which a row is copied in pieces.
const largeRow = 1 << 20

// copyLarge is CopyRows for large rows.
func copyLarge[E Plain](dst []E, d, dStride int, src []E, s, sStride, n, size int) {
	width := int(unsafe.Sizeof(*new(E)))
	for range n {
		to, from := dst[d:d+size], src[s:s+size]
		bulk.Copy(unsafe.Slice((*byte)(unsafe.Pointer(&to[0])), size*width), unsafe.Slice((*byte)(unsafe.Pointer(&from[0])), size*width))
		d, s = d+dStride, s+sStride
	}
}

// Reverse copies src to dst in opposite order. They must not overlap.
func Reverse(dst, src []uint32) {
	n := len(dst)
	src = src[:n]
	if l := Current(); l != Generic && reverse[l-1] != nil {
		for n >= vector {
			bulk.SafePoint()
			k := min(piece, n&^(vector-1))
			reverse[l-1](word[float32](&dst[len(dst)-n]), word[float32](&src[n-k]), k)
			n -= k
		}
	}
	for i := range n {
		dst[len(dst)-n+i] = src[n-1-i]
	}
}
