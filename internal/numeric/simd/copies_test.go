package simd

import (
	"slices"
	"testing"
)

func TestCopyRows(t *testing.T) {
	atLevels(t, func(t *testing.T) {
		for _, size := range []int{1, 3, 4, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 255, 256, 300, 1000, 2047, 2048, 2100, 70_000} {
			testCopyRows[uint8](t, size)
			testCopyRows[uint32](t, size)
			testCopyRows[uint64](t, size)
		}
	})
}

func testCopyRows[E uint8 | uint32 | uint64](t *testing.T, size int) {
	t.Helper()
	const rows = 5
	for _, stride := range []int{size, size + 3, -size - 1} {
		span := rows * max(stride, -stride)
		src, dst := make([]E, span+size), make([]E, rows*(size+2))
		at := 0
		for i := range src {
			src[i] = E(i%251 + 1)
		}
		if stride < 0 {
			at = span
		}
		CopyRows(dst, 1, size+2, src, at, stride, rows, size)
		for r := range rows {
			row := dst[r*(size+2):][:size+2]
			if !slices.Equal(row[1:size+1], src[at+r*stride:][:size]) || row[0] != 0 || row[size+1] != 0 {
				t.Errorf("%d elements of type %T, %d apart: row %d is not right", size, src[0], stride, r)
			}
		}
	}
}

func TestReverse(t *testing.T) {
	atLevels(t, func(t *testing.T) {
		for _, n := range lengths {
			src, dst := make([]uint32, n), make([]uint32, n)
			for i := range src {
				src[i] = uint32(i)
			}
			Reverse(dst, src)
			slices.Reverse(src)
			if !slices.Equal(dst, src) {
				t.Errorf("%d elements are not in opposite order", n)
			}
		}
	})
}
