package simd

import "unsafe"

// transpose8 and transposeHalves8 transpose 8 rows of a whole number of 8×8 squares. Strides are in
// bytes.
var (
	transpose8       levels[func(dst, src *float32, dstStride, srcStride, n int)]
	transposeHalves8 levels[func(dst, src *uint16, dstStride, srcStride, n int)]
)

// columnsPerBlock returns the number of columns of 8 rows that are transposed before the next 8
// rows. The cache lines written must stay in the L1 cache until they are full. If they are a large
// power of two apart, they compete for few places.
func columnsPerBlock(bytes int) int {
	if bytes%2048 == 0 {
		return 8
	}
	return 32
}

// transposeLines transposes blocks of whole cache lines, with as many rows and columns as a vector
// has elements.
var (
	transposeLines32 levels[func(dst, src *float32, dstStride, srcStride, dstStep, srcStep, blocks int)]
	transposeLines64 levels[func(dst, src *float64, dstStride, srcStride, dstStep, srcStep, blocks int)]
)

// Transpose computes dst[i*dstStride+j] = src[j*srcStride+i] for the rows j and the columns i of a
// matrix in src.
func Transpose[E uint16 | uint32 | uint64](dst []E, dstStride int, src []E, srcStride, rows, cols int) {
	wholeRows, wholeCols := transposeBlocks(dst, dstStride, src, srcStride, rows, cols)
	transposeSquares(dst, dstStride, src, srcStride, 0, rows, wholeCols, cols)
	transposeSquares(dst, dstStride, src, srcStride, wholeRows, rows, 0, wholeCols)
}

// transposeBlocks transposes whole blocks of a matrix and returns the number of rows and columns
// that it processed.
func transposeBlocks[E uint16 | uint32 | uint64](dst []E, dstStride int, src []E, srcStride, rows, cols int) (wholeRows, wholeCols int) {
	const line = 64
	size := int(unsafe.Sizeof(E(0)))
	n, l := line/size, Current()
	if l == Generic || size == 2 || transposeLines32[l-1] == nil || rows < n || cols < n {
		return 0, 0
	}
	wholeRows, wholeCols = rows&^(n-1), cols&^(n-1)
	for i := 0; i < wholeCols; i += n {
		to, from, blocks := unsafe.Pointer(&dst[i*dstStride]), unsafe.Pointer(&src[i]), wholeRows/n
		_, _ = dst[(i+n-1)*dstStride+wholeRows-1], src[(wholeRows-1)*srcStride+i+n-1]
		if size == 4 {
			transposeLines32[l-1]((*float32)(to), (*float32)(from), size*dstStride, size*srcStride, line, line*srcStride, blocks)
		} else {
			transposeLines64[l-1]((*float64)(to), (*float64)(from), size*dstStride, size*srcStride, line, line*srcStride, blocks)
		}
	}
	return wholeRows, wholeCols
}

// transposeSquares transposes the rows from row to rows and the columns from col to cols of a
// matrix.
func transposeSquares[E uint16 | uint32 | uint64](dst []E, dstStride int, src []E, srcStride, row, rows, col, cols int) {
	wholeRows, wholeCols, size := row, col, int(unsafe.Sizeof(E(0)))
	if l := Current(); l != Generic && transpose8[l-1] != nil && size < 8 {
		wholeRows, wholeCols = row+(rows-row)&^7, col+(cols-col)&^7
		for i, step := col, columnsPerBlock(size*dstStride); i < wholeCols; i += step {
			n := min(step, wholeCols-i)
			for j := row; j < wholeRows; j += 8 {
				to, from := unsafe.Pointer(&dst[i*dstStride+j]), unsafe.Pointer(&src[j*srcStride+i])
				if size == 4 {
					transpose8[l-1]((*float32)(to), (*float32)(from), size*dstStride, size*srcStride, n)
				} else {
					transposeHalves8[l-1]((*uint16)(to), (*uint16)(from), size*dstStride, size*srcStride, n)
				}
			}
		}
	}
	transposeGo(dst, dstStride, src, srcStride, row, rows, wholeCols, cols)
	transposeGo(dst, dstStride, src, srcStride, wholeRows, rows, col, wholeCols)
}

func transposeGo[E any](dst []E, dstStride int, src []E, srcStride, row, rows, col, cols int) {
	if row == rows || col == cols {
		return
	}
	if min(rows-row, cols-col) <= thin {
		TransposeThin(dst[col*dstStride+row:], dstStride, src[row*srcStride+col:], srcStride, rows-row, cols-col)
		return
	}
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
