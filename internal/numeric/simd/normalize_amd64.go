package simd

func init() {
	columnPasses.moments = levels[func(x, sum, squares, shift *float32, stride, rows, cols int)]{moments32AVX2, moments32AVX512}
	columnPasses.products = levels[func(dy, x, sum, products, shift *float32, stride, rows, cols int)]{products32AVX2, products32AVX512}
	columnPasses.normalize = levels[func(dst, x, shift, factor, offset *float32, stride, rows, cols int)]{normalize32AVX2, normalize32AVX512}
	columnPasses.normalizeGrad = levels[func(dst, dy, x, shift, factor, slope, level *float32, stride, rows, cols int)]{
		normalizeGrad32AVX2, normalizeGrad32AVX512,
	}
	neighbours.mulRows = levels[func(dst, a, b *float32, stride, rows, cols int)]{mulRows32AVX2, mulRows32AVX512}
	neighbours.windowSums = levels[func(dst, x *float32, stride, rows, cols, n int, scale, bias float32)]{windowSums32AVX2, windowSums32AVX512}
}
