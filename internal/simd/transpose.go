package simd

import "unsafe"

// transpose8 and transposeHalves8 turn 8 rows of a whole number of squares; strides are in bytes.
var (
	transpose8       levels[func(dst, src *float32, dstStride, srcStride, n int)]
	transposeHalves8 levels[func(dst, src *uint16, dstStride, srcStride, n int)]
)

// turnColumns returns how many columns of 8 rows are turned before the next 8 rows: the lines that they are written to stay
// in the first cache until they are full, which has few places for lines that far powers of two lie between.
func turnColumns(bytes int) int {
	if bytes%2048 == 0 {
		return 8
	}
	return 32
}

// Transpose: dst[i*dstStride+j] = src[j*srcStride+i] for the rows j and the columns i of a matrix in src.
func Transpose[E uint16 | uint32](dst []E, dstStride int, src []E, srcStride, rows, cols int) {
	wholeRows, wholeCols, size := 0, 0, int(unsafe.Sizeof(E(0)))
	if l := Current(); l != Generic && transpose8[l-1] != nil {
		wholeRows, wholeCols = rows&^7, cols&^7
		for i, step := 0, turnColumns(size*dstStride); i < wholeCols; i += step {
			n := min(step, wholeCols-i)
			for j := 0; j < wholeRows; j += 8 {
				to, from := unsafe.Pointer(&dst[i*dstStride+j]), unsafe.Pointer(&src[j*srcStride+i])
				if size == 4 {
					transpose8[l-1]((*float32)(to), (*float32)(from), size*dstStride, size*srcStride, n)
				} else {
					transposeHalves8[l-1]((*uint16)(to), (*uint16)(from), size*dstStride, size*srcStride, n)
				}
			}
		}
	}
	transposeGo(dst, dstStride, src, srcStride, 0, rows, wholeCols, cols)
	transposeGo(dst, dstStride, src, srcStride, wholeRows, rows, 0, wholeCols)
}

func transposeGo[E any](dst []E, dstStride int, src []E, srcStride, row, rows, col, cols int) {
	const square = 16
	for i := col; i < cols; i += square {
		for j := row; j < rows; j += square {
			for k := i; k < min(i+square, cols); k++ {
				out := dst[k*dstStride+j:][:min(square, rows-j)]
				at := j*srcStride + k
				for c := range out {
					out[c] = src[at]
					at += srcStride
				}
			}
		}
	}
}
