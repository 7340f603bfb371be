package microkernel

import (
	"golang.org/x/sys/cpu"

	"github.com/weft-ml/weft/internal/numeric/simd"
)

func init() {
	if !cpu.X86.HasAVX512BF16 {
		return
	}
	k := &kernels32[simd.AVX512]
	pairKernel = &Kernel[float32]{
		Rows: 14, Vecs: 2, Lanes: k.Lanes, packRows: k.packRows, packColumns: k.packColumns,
		run: [15][5]func(*byte){
			1:  {1: pairs1x1AVX512, 2: pairs1x2AVX512},
			2:  {1: pairs2x1AVX512, 2: pairs2x2AVX512},
			3:  {1: pairs3x1AVX512, 2: pairs3x2AVX512},
			4:  {1: pairs4x1AVX512, 2: pairs4x2AVX512},
			5:  {1: pairs5x1AVX512, 2: pairs5x2AVX512},
			6:  {1: pairs6x1AVX512, 2: pairs6x2AVX512},
			7:  {1: pairs7x1AVX512, 2: pairs7x2AVX512},
			8:  {1: pairs8x1AVX512, 2: pairs8x2AVX512},
			9:  {1: pairs9x1AVX512, 2: pairs9x2AVX512},
			10: {1: pairs10x1AVX512, 2: pairs10x2AVX512},
			11: {1: pairs11x1AVX512, 2: pairs11x2AVX512},
			12: {1: pairs12x1AVX512, 2: pairs12x2AVX512},
			13: {1: pairs13x1AVX512, 2: pairs13x2AVX512},
			14: {1: pairs14x1AVX512, 2: pairs14x2AVX512},
		},
	}
	pairRows = pairRowsAVX512
}
