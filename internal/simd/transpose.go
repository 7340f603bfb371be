package simd

// transpose8 turns 8 rows of a whole number of squares; strides are in bytes.
var transpose8 levels[func(dst, src *float32, dstStride, srcStride, n int)]

// turnColumns returns how many columns of 8 rows are turned before the next 8 rows: the lines that they are written to stay
// in the first cache until they are full, which has few places for lines that far powers of two lie between.
func turnColumns(dstStride int) int {
	if dstStride%512 == 0 {
		return 8
	}
	return 32
}

// Transpose: dst[i*dstStride+j] = src[j*srcStride+i] for the rows j and the columns i of a matrix in src.
func Transpose(dst []uint32, dstStride int, src []uint32, srcStride, rows, cols int) {
	wholeRows, wholeCols := 0, 0
	if l := Current(); l != Generic && transpose8[l-1] != nil {
		wholeRows, wholeCols = rows&^7, cols&^7
		turn := transpose8[l-1]
		for i, step := 0, turnColumns(dstStride); i < wholeCols; i += step {
			n := min(step, wholeCols-i)
			for j := 0; j < wholeRows; j += 8 {
				turn(word[float32](&dst[i*dstStride+j]), word[float32](&src[j*srcStride+i]), 4*dstStride, 4*srcStride, n)
			}
		}
	}
	transposeGo(dst, dstStride, src, srcStride, 0, rows, wholeCols, cols)
	transposeGo(dst, dstStride, src, srcStride, wholeRows, rows, 0, wholeCols)
}

func transposeGo(dst []uint32, dstStride int, src []uint32, srcStride, row, rows, col, cols int) {
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
