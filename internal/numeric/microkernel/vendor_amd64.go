package microkernel

import "github.com/weft-ml/weft/internal/numeric/simd"

// vendor returns the first four characters of the processor's vendor ID, as CPUID reports it.
func vendor() uint32

const intel = 'G' | 'e'<<8 | 'n'<<16 | 'u'<<24

func init() {
	is := vendor() == intel
	kernels32[simd.AVX512].Deep, kernels64[simd.AVX512].Deep = is, is
	SlowPairs = is // an instruction for pairs takes as long as four multiply-adds
}
