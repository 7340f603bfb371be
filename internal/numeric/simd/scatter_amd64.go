package simd

func init() {
	scatterRows = levels[func(dst, src *float32, list *int64, rows, words int)]{scatterRows32AVX2, scatterRows32AVX512}
	scatterAdd32 = levels[func(dst, src *float32, to, from *int64, rows, cols int)]{addListedRows32AVX2, addListedRows32AVX512}
	scatterAdd64 = levels[func(dst, src *float64, to, from *int64, rows, cols int)]{addListedRows64AVX2, addListedRows64AVX512}
}
