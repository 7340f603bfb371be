package simd

import "testing"

func TestTranspose(t *testing.T) {
	atLevels(t, func(t *testing.T) {
		for _, rows := range []int{0, 1, 7, 8, 9, 24, 31} {
			for _, cols := range []int{0, 1, 5, 8, 17, 64, 72, 201} {
				testTranspose(t, rows, cols)
			}
		}
	})
}

func testTranspose(t *testing.T, rows, cols int) {
	srcStride, dstStride := cols+3, rows+2
	src, dst := make([]uint32, rows*srcStride), make([]uint32, cols*dstStride)
	for i := range src {
		src[i] = uint32(i + 1)
	}
	Transpose(dst, dstStride, src, srcStride, rows, cols)
	for i := range cols {
		for j := range dstStride {
			want := uint32(0)
			if j < rows {
				want = src[j*srcStride+i]
			}
			if got := dst[i*dstStride+j]; got != want {
				t.Fatalf("%d by %d: element %d, %d is %d, want %d", rows, cols, i, j, got, want)
			}
		}
	}
}
