package simd

// Sums over neighbours in the rows of a matrix, for local response normalization.

// neighbours holds the assembly. stride is in bytes.
var neighbours struct {
	mulRows    levels[func(dst, a, b *float32, stride, rows, cols int)]
	windowSums levels[func(dst, x *float32, stride, rows, cols, n int, scale, bias float32)]
}

// MulRows computes dst = a*b for rows of cols elements. Rows are stride apart in dst, and
// contiguous in a and b.
func MulRows(dst []float32, stride int, a, b []float32, cols int) {
	b = b[:len(a)]
	eachRowBlock(len(a), cols, cols, func(row, rows int) {
		at := row * cols
		_ = dst[(row+rows-1)*stride+cols-1]
		if l := Current(); l != Generic {
			neighbours.mulRows[l-1](&dst[row*stride], &a[at], &b[at], stride*size[float32](), rows, cols)
			return
		}
		for i := range rows * cols {
			dst[(row+i/cols)*stride+i%cols] = a[at+i] * b[at+i]
		}
	})
}

// WindowSums sets each element j of a row of dst to bias + scale times the sum of elements j to
// j+n-1 of that row of x. Rows of dst have cols elements without gaps. Rows of x have cols+n-1
// elements and are stride apart.
func WindowSums(dst []float32, cols int, x []float32, stride, n int, scale, bias float32) {
	eachRowBlock(len(dst), cols, cols*n, func(row, rows int) {
		at := row * cols
		_ = x[(row+rows-1)*stride+cols+n-2]
		if l := Current(); l != Generic {
			neighbours.windowSums[l-1](&dst[at], &x[row*stride], stride*size[float32](), rows, cols, n, scale, bias)
			return
		}
		for i := range rows * cols {
			sum := float32(0)
			for _, v := range x[(row+i/cols)*stride+i%cols:][:n] {
				sum += v
			}
			dst[at+i] = bias + scale*sum
		}
	})
}

// eachRowBlock calls visit for blocks of rows. The rows have n elements in all, and each costs
// work.
func eachRowBlock(n, cols, work int, visit func(row, rows int)) {
	if cols == 0 {
		return
	}
	step := max(1, 4*piece/work)
	for row := 0; row < n/cols; row += step {
		visit(row, min(step, n/cols-row))
	}
}
