package simd

import "github.com/weft-ml/weft/internal/sys/bulk"

// Passes down the columns of matrices, for batch normalization. Rows of x, dy and dst have the
// length of shift, without gaps.

// columnPasses holds the assembly. stride is in bytes.
var columnPasses struct {
	moments       levels[func(x, sum, squares, shift *float32, stride, rows, cols int)]
	products      levels[func(dy, x, sum, products, shift *float32, stride, rows, cols int)]
	normalize     levels[func(dst, x, shift, factor, offset *float32, stride, rows, cols int)]
	normalizeGrad levels[func(dst, dy, x, shift, factor, slope, level *float32, stride, rows, cols int)]
}

// Moments adds the sums over the rows of x - shift to sum, and those of its square to squares.
func Moments(sum, squares, x, shift []float32) {
	sum, squares = sum[:len(shift)], squares[:len(shift)]
	if l := Current(); l != Generic {
		columnPieces(len(x), len(shift), func(at, col, stride, rows, cols int) {
			columnPasses.moments[l-1](&x[at], &sum[col], &squares[col], &shift[col], stride, rows, cols)
		})
		return
	}
	eachRow(len(x), len(shift), func(at int) {
		for c, v := range x[at : at+len(shift)] {
			v -= shift[c]
			sum[c] += v
			squares[c] += v * v
		}
	})
}

// Products adds the sums over the rows of dy to sum, and those of dy*(x - shift) to products.
func Products(sum, products, dy, x, shift []float32) {
	sum, products, x = sum[:len(shift)], products[:len(shift)], x[:len(dy)]
	if l := Current(); l != Generic {
		columnPieces(len(dy), len(shift), func(at, col, stride, rows, cols int) {
			columnPasses.products[l-1](&dy[at], &x[at], &sum[col], &products[col], &shift[col], stride, rows, cols)
		})
		return
	}
	eachRow(len(dy), len(shift), func(at int) {
		for c, v := range dy[at : at+len(shift)] {
			sum[c] += v
			products[c] += v * (x[at+c] - shift[c])
		}
	})
}

// Normalize computes dst = (x - shift)*factor + offset in each row.
func Normalize(dst, x, shift, factor, offset []float32) {
	x, factor, offset = x[:len(dst)], factor[:len(shift)], offset[:len(shift)]
	if l := Current(); l != Generic {
		columnPieces(len(dst), len(shift), func(at, col, stride, rows, cols int) {
			columnPasses.normalize[l-1](&dst[at], &x[at], &shift[col], &factor[col], &offset[col], stride, rows, cols)
		})
		return
	}
	eachRow(len(dst), len(shift), func(at int) {
		for c := range shift {
			dst[at+c] = (x[at+c]-shift[c])*factor[c] + offset[c]
		}
	})
}

// NormalizeGrad computes dst = dy*factor + (x - shift)*slope + level in each row.
func NormalizeGrad(dst, dy, x, shift, factor, slope, level []float32) {
	dy, x = dy[:len(dst)], x[:len(dst)]
	factor, slope, level = factor[:len(shift)], slope[:len(shift)], level[:len(shift)]
	if l := Current(); l != Generic {
		columnPieces(len(dst), len(shift), func(at, col, stride, rows, cols int) {
			columnPasses.normalizeGrad[l-1](&dst[at], &dy[at], &x[at], &shift[col], &factor[col], &slope[col], &level[col], stride, rows, cols)
		})
		return
	}
	eachRow(len(dst), len(shift), func(at int) {
		for c := range shift {
			dst[at+c] = dy[at+c]*factor[c] + (x[at+c]-shift[c])*slope[c] + level[c]
		}
	})
}

// columnPieces divides a matrix of n elements into pieces and calls visit for each. visit receives
// the position of the piece, its first column, the distance between rows in bytes, and its size.
func columnPieces(n, columns int, visit func(at, col, stride, rows, cols int)) {
	if columns == 0 {
		return
	}
	for col := 0; col < columns; col += piece {
		bulk.SafePoint()
		cols := min(piece, columns-col)
		step := max(1, piece/cols)
		for row, rows := 0, n/columns; row < rows; row += step {
			visit(row*columns+col, col, columns*size[float32](), min(step, rows-row), cols)
		}
	}
}

func eachRow(n, columns int, visit func(at int)) {
	for at := 0; at+columns <= n && columns > 0; at += columns {
		visit(at)
	}
}
