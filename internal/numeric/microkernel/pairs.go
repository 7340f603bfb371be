package microkernel

import (
	"unsafe"

	"github.com/weft-ml/weft/internal/numeric/simd"
)

// What AVX-512 has for bfloat16, where the processor has it; pairs_amd64.go fills it in.
var (
	pairKernel *Kernel[float32]
	pairRows   func(dst *float32, a, b *uint16, blocks int)
)

// SlowPairs says that products are faster in float32, copies included, than with the processor's
// instruction for pairs.
var SlowPairs bool

// Pairs returns the kernels for products of bfloat16, or nil if the level in use has none or they
// are slow. Elements of A and B are pairs of bfloat16, neighbours along k, in the place of float32,
// of which they multiply the first ones and the second ones; C is float32. Denormal numbers count
// as zero.
func Pairs() *Kernel[float32] {
	if simd.Current() < simd.AVX512 || SlowPairs {
		return nil
	}
	return pairKernel
}

// PairRows makes pairs of the elements of two rows of bfloat16 of the length of dst. A nil b stands
// for zeros.
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
