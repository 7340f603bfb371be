package microkernel

import "github.com/weft-ml/weft/internal/numeric/simd"

func init() {
	kernels32[simd.AVX2] = Kernel[float32]{
		Rows: 6, Vecs: 2, Lanes: 8, WideRows: 4, WideVecs: 3,
		run: [15][5]func(*byte){
			1: {1: tile1x1x32AVX2, 2: tile1x2x32AVX2, 3: tile1x3x32AVX2},
			2: {1: tile2x1x32AVX2, 2: tile2x2x32AVX2, 3: tile2x3x32AVX2},
			3: {1: tile3x1x32AVX2, 2: tile3x2x32AVX2, 3: tile3x3x32AVX2},
			4: {1: tile4x1x32AVX2, 2: tile4x2x32AVX2, 3: tile4x3x32AVX2},
			5: {1: tile5x1x32AVX2, 2: tile5x2x32AVX2},
			6: {1: tile6x1x32AVX2, 2: tile6x2x32AVX2},
		},
		packRows: [5]func(dst, src *float32, dstRow, srcRow, rows, last int){
			1: packRows1x32AVX2, 2: packRows2x32AVX2, 3: packRows3x32AVX2, 4: packRows4x32AVX2,
		},
		packColumns: packColumns32AVX2,
	}
	kernels32[simd.AVX512] = Kernel[float32]{
		Rows: 14, Vecs: 2, Lanes: 16, WideRows: 6, WideVecs: 4,
		run: [15][5]func(*byte){
			1:  {1: tile1x1x32AVX512, 2: tile1x2x32AVX512, 3: tile1x3x32AVX512, 4: tile1x4x32AVX512},
			2:  {1: tile2x1x32AVX512, 2: tile2x2x32AVX512, 3: tile2x3x32AVX512, 4: tile2x4x32AVX512},
			3:  {1: tile3x1x32AVX512, 2: tile3x2x32AVX512, 3: tile3x3x32AVX512, 4: tile3x4x32AVX512},
			4:  {1: tile4x1x32AVX512, 2: tile4x2x32AVX512, 3: tile4x3x32AVX512, 4: tile4x4x32AVX512},
			5:  {1: tile5x1x32AVX512, 2: tile5x2x32AVX512, 3: tile5x3x32AVX512, 4: tile5x4x32AVX512},
			6:  {1: tile6x1x32AVX512, 2: tile6x2x32AVX512, 3: tile6x3x32AVX512, 4: tile6x4x32AVX512},
			7:  {1: tile7x1x32AVX512, 2: tile7x2x32AVX512},
			8:  {1: tile8x1x32AVX512, 2: tile8x2x32AVX512},
			9:  {1: tile9x1x32AVX512, 2: tile9x2x32AVX512},
			10: {1: tile10x1x32AVX512, 2: tile10x2x32AVX512},
			11: {1: tile11x1x32AVX512, 2: tile11x2x32AVX512},
			12: {1: tile12x1x32AVX512, 2: tile12x2x32AVX512},
			13: {1: tile13x1x32AVX512, 2: tile13x2x32AVX512},
			14: {1: tile14x1x32AVX512, 2: tile14x2x32AVX512},
		},
		packRows: [5]func(dst, src *float32, dstRow, srcRow, rows, last int){
			1: packRows1x32AVX512, 2: packRows2x32AVX512, 3: packRows3x32AVX512, 4: packRows4x32AVX512,
		},
		packColumns: packColumns32AVX512,
	}
	kernels64[simd.AVX2] = Kernel[float64]{
		Rows: 6, Vecs: 2, Lanes: 4, WideRows: 4, WideVecs: 3,
		run: [15][5]func(*byte){
			1: {1: tile1x1x64AVX2, 2: tile1x2x64AVX2, 3: tile1x3x64AVX2},
			2: {1: tile2x1x64AVX2, 2: tile2x2x64AVX2, 3: tile2x3x64AVX2},
			3: {1: tile3x1x64AVX2, 2: tile3x2x64AVX2, 3: tile3x3x64AVX2},
			4: {1: tile4x1x64AVX2, 2: tile4x2x64AVX2, 3: tile4x3x64AVX2},
			5: {1: tile5x1x64AVX2, 2: tile5x2x64AVX2},
			6: {1: tile6x1x64AVX2, 2: tile6x2x64AVX2},
		},
		packRows: [5]func(dst, src *float64, dstRow, srcRow, rows, last int){
			1: packRows1x64AVX2, 2: packRows2x64AVX2, 3: packRows3x64AVX2, 4: packRows4x64AVX2,
		},
		packColumns: packColumns64AVX2,
	}
	kernels64[simd.AVX512] = Kernel[float64]{
		Rows: 14, Vecs: 2, Lanes: 8, WideRows: 6, WideVecs: 4,
		run: [15][5]func(*byte){
			1:  {1: tile1x1x64AVX512, 2: tile1x2x64AVX512, 3: tile1x3x64AVX512, 4: tile1x4x64AVX512},
			2:  {1: tile2x1x64AVX512, 2: tile2x2x64AVX512, 3: tile2x3x64AVX512, 4: tile2x4x64AVX512},
			3:  {1: tile3x1x64AVX512, 2: tile3x2x64AVX512, 3: tile3x3x64AVX512, 4: tile3x4x64AVX512},
			4:  {1: tile4x1x64AVX512, 2: tile4x2x64AVX512, 3: tile4x3x64AVX512, 4: tile4x4x64AVX512},
			5:  {1: tile5x1x64AVX512, 2: tile5x2x64AVX512, 3: tile5x3x64AVX512, 4: tile5x4x64AVX512},
			6:  {1: tile6x1x64AVX512, 2: tile6x2x64AVX512, 3: tile6x3x64AVX512, 4: tile6x4x64AVX512},
			7:  {1: tile7x1x64AVX512, 2: tile7x2x64AVX512},
			8:  {1: tile8x1x64AVX512, 2: tile8x2x64AVX512},
			9:  {1: tile9x1x64AVX512, 2: tile9x2x64AVX512},
			10: {1: tile10x1x64AVX512, 2: tile10x2x64AVX512},
			11: {1: tile11x1x64AVX512, 2: tile11x2x64AVX512},
			12: {1: tile12x1x64AVX512, 2: tile12x2x64AVX512},
			13: {1: tile13x1x64AVX512, 2: tile13x2x64AVX512},
			14: {1: tile14x1x64AVX512, 2: tile14x2x64AVX512},
		},
		packRows: [5]func(dst, src *float64, dstRow, srcRow, rows, last int){
			1: packRows1x64AVX512, 2: packRows2x64AVX512, 3: packRows3x64AVX512, 4: packRows4x64AVX512,
		},
		packColumns: packColumns64AVX512,
	}
	for _, level := range []simd.Level{simd.AVX2, simd.AVX512} {
		kernels32[level].widen()
		kernels64[level].widen()
	}
}
