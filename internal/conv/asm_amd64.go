package conv

import "github.com/weft-ml/weft/internal/simd"

func init() {
	poolKernels32[simd.AVX2] = poolKernelSet{maxPool32AVX2, avgPool32AVX2, maxPoolGrad32AVX2, avgPoolGrad32AVX2}
	poolKernels32[simd.AVX512] = poolKernelSet{maxPool32AVX512, avgPool32AVX512, maxPoolGrad32AVX512, avgPoolGrad32AVX512}
	poolKernels64[simd.AVX2] = poolKernelSet{maxPool64AVX2, avgPool64AVX2, maxPoolGrad64AVX2, avgPoolGrad64AVX2}
	poolKernels64[simd.AVX512] = poolKernelSet{maxPool64AVX512, avgPool64AVX512, maxPoolGrad64AVX512, avgPoolGrad64AVX512}
}
