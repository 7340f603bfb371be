package philox

import "github.com/weft-ml/weft/internal/numeric/simd"

func init() {
	wordsAt[simd.AVX2], wordsAt[simd.AVX512] = words32AVX2, words32AVX512
	unitsAt[simd.AVX2], unitsAt[simd.AVX512] = units32AVX2, units32AVX512
	normalsAt[simd.AVX2], normalsAt[simd.AVX512] = normals32AVX2, normals32AVX512
}
