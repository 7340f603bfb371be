package simd

import "testing"

func TestTranspose(t *testing.T) {
	atLevels(t, func(t *testing.T) {
		for _, rows := range []int{0, 1, 2, 3, 4, 7, 8, 9, 24, 31, 35} {
			for _, cols := range []int{0, 1, 2, 3, 4, 5, 8, 17, 64, 72, 201} {
				testTranspose[uint16](t, rows, cols)
				testTranspose[uint32](t, rows, cols)
				testTranspose[uint64](t, rows, cols)
			}
		}
	})
}

func testTranspose[E uint16 | uint32 | uint64](t *testing.T, rows, cols int) {
	srcStride, dstStride := cols+3, rows+2
	src, dst := make([]E, rows*srcStride), make([]E, cols*dstStride)
	for i := range src {
		src[i] = E(i + 1)
	}
	Transpose(dst, dstStride, src, srcStride, rows, cols)
	for i := range cols {
		for j := range dstStride {
			want := E(0)
			if j < rows {
				want = src[j*srcStride+i]
			}
			if got := dst[i*dstStride+j]; got != want {
				t.Fatalf("%d by %d: element %d, %d is %d, want %d", rows, cols, i, j, got, want)
			}
		}
	}
}
