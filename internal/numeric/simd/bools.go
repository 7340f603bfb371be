package simd

import (
	bytes "encoding/binary"
	"unsafe"
)

// Maps of booleans, eight at a time. A boolean is a byte of value 0 or 1.

var andWords, orWords, xorWords levels[func(dst, a, b *int32, n int)]

// wholeWords maps whole words with the assembly and returns the rest.
func wholeWords(asm *levels[func(dst, a, b *int32, n int)], dst, a, b []bool) (z, x, y []uint8) {
	z, x, y = bytesOf(dst), bytesOf(a)[:len(dst)], bytesOf(b)[:len(dst)]
	if len(z) < 4*vector {
		return z, x, y
	}
	n := len(z) / 4
	done := 4 * runInts(asm, wordsOf(z, n), wordsOf(x, n), wordsOf(y, n))
	return z[done:], x[done:], y[done:]
}

func wordsOf(x []uint8, n int) []int32 { return unsafe.Slice((*int32)(unsafe.Pointer(&x[0])), n) }

// And computes dst = a and b.
func And(dst, a, b []bool) {
	z, x, y := wholeWords(&andWords, dst, a, b)
	for ; len(z) >= 8; z, x, y = z[8:], x[8:], y[8:] {
		bytes.NativeEndian.PutUint64(z, bytes.NativeEndian.Uint64(x)&bytes.NativeEndian.Uint64(y))
	}
	for i := range z {
		z[i] = x[i] & y[i]
	}
}

// Or computes dst = a or b.
func Or(dst, a, b []bool) {
	z, x, y := wholeWords(&orWords, dst, a, b)
	for ; len(z) >= 8; z, x, y = z[8:], x[8:], y[8:] {
		bytes.NativeEndian.PutUint64(z, bytes.NativeEndian.Uint64(x)|bytes.NativeEndian.Uint64(y))
	}
	for i := range z {
		z[i] = x[i] | y[i]
	}
}

var truths [4 << 10]bool

func init() {
	for i := range truths {
		truths[i] = true
	}
}

// Not computes dst = not src.
func Not(dst, src []bool) {
	const ones = 0x0101010101010101
	src = src[:len(dst)]
	for len(dst) > 0 {
		n := min(len(dst), len(truths))
		z, x, _ := wholeWords(&xorWords, dst[:n], src[:n], truths[:n])
		for ; len(z) >= 8; z, x = z[8:], x[8:] {
			bytes.NativeEndian.PutUint64(z, bytes.NativeEndian.Uint64(x)^ones)
		}
		for i := range z {
			z[i] = x[i] ^ 1
		}
		dst, src = dst[n:], src[n:]
	}
}

// Count returns the number of true elements.
func Count(src []bool) int {
	n := 0
	x := bytesOf(src)
	for len(x) >= 8 {
		// Sums of up to 255 words do not overflow their bytes.
		block := min(len(x)/8, 255)
		var sum uint64
		for range block {
			sum += bytes.NativeEndian.Uint64(x)
			x = x[8:]
		}
		const even = 0x00ff00ff00ff00ff
		sum = sum&even + sum>>8&even
		n += int(sum * 0x0001000100010001 >> 48)
	}
	for _, v := range x {
		n += int(v)
	}
	return n
}
