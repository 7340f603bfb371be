package microkernel

import (
	"unsafe"

	"github.com/weft-ml/weft/internal/numeric/simd"
)

// AVX-512 code for bfloat16, or nil if the processor has none. pairs_amd64.go sets it.
var (
	pairKernel *Kernel[float32]
	pairRows   func(dst *float32, a, b *uint16, blocks int)
)

// SlowPairs is set if products are faster in float32, including the copies, than with the
// processor's instruction for pairs.
var SlowPairs bool

// Pairs returns the kernels for products of bfloat16. It returns nil if the current level has none
// or they are slow. An element of A or B is a pair of bfloat16, neighbours along k, of the size of
// a float32. The product of two pairs is the sum of the products of their first and of their second
// elements. C is float32. Denormals are treated as zero.
func Pairs() *Kernel[float32] {
	if simd.Current() < simd.AVX512 || SlowPairs {
		return nil
	}
	return pairKernel
}

// PairRows combines the elements of two rows of bfloat16, of the length of dst, into pairs. A nil b
// represents zeros.
func PairRows(dst []float32, a, b []uint16) {
	n := 0
	if b != nil {
		const block, most = 16, 1 << 10 // blocks that take less than a microsecond
		for n+block <= len(dst) {
			blocks := min(most, (len(dst)-n)/block)
			pairRows(&dst[n], &a[n:][:blocks*block][0], &b[n:][:blocks*block][0], blocks)
			n += blocks * block
		}
	}
	words := unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(dst))), len(dst))
	for ; n < len(dst); n++ {
		words[n] = uint32(a[n])
		if b != nil {
			words[n] |= uint32(b[n]) << 16
		}
	}
}
