package channelwise

import "github.com/weft-ml/weft/internal/numeric/simd"

func init() {
	poolKernels32[simd.AVX2] = poolKernelSet{maxPool32AVX2, avgPool32AVX2, maxPoolGrad32AVX2, nearPoolGrad32AVX2, avgPoolGrad32AVX2}
	poolKernels32[simd.AVX512] = poolKernelSet{maxPool32AVX512, avgPool32AVX512, maxPoolGrad32AVX512, nearPoolGrad32AVX512, avgPoolGrad32AVX512}
	poolKernels64[simd.AVX2] = poolKernelSet{maxPool64AVX2, avgPool64AVX2, maxPoolGrad64AVX2, nearPoolGrad64AVX2, avgPoolGrad64AVX2}
	poolKernels64[simd.AVX512] = poolKernelSet{maxPool64AVX512, avgPool64AVX512, maxPoolGrad64AVX512, nearPoolGrad64AVX512, avgPoolGrad64AVX512}
	tapKernels32[simd.AVX2] = tapKernelSet{
		correlate32AVX2, tapProducts32AVX2, map[int]func(args *byte){3: correlate3x32AVX2, 5: correlate5x32AVX2}, map[int]func(args *byte){3: tapProducts3x32AVX2},
	}
	tapKernels32[simd.AVX512] = tapKernelSet{
		correlate32AVX512, tapProducts32AVX512, map[int]func(args *byte){3: correlate3x32AVX512, 5: correlate5x32AVX512}, map[int]func(args *byte){3: tapProducts3x32AVX512},
	}
	tapKernels64[simd.AVX2] = tapKernelSet{
		correlate64AVX2, tapProducts64AVX2, map[int]func(args *byte){3: correlate3x64AVX2, 5: correlate5x64AVX2}, map[int]func(args *byte){3: tapProducts3x64AVX2},
	}
	tapKernels64[simd.AVX512] = tapKernelSet{
		correlate64AVX512, tapProducts64AVX512, map[int]func(args *byte){3: correlate3x64AVX512, 5: correlate5x64AVX512}, map[int]func(args *byte){3: tapProducts3x64AVX512},
	}
}
