//go:build !race

package gemm

import "testing"

// The race detector makes sync.Pool drop items at random.
func TestMulDoesNotAllocate(t *testing.T) {
	for _, s := range [][3]int{{4, 4, 4}, {1, 64, 64}, {64, 1, 64}, {64, 64, 64}, {128, 100, 784}} {
		a, b, c := matrix[float32](s[0], s[2], false, 0), matrix[float32](s[2], s[1], true, 0), matrix[float32](s[0], s[1], false, 0)
		if n := testing.AllocsPerRun(50, func() { Mul(c, a, b, Options[float32]{}) }); n >= 1 {
			t.Errorf("a product of %v allocates %v times", s, n)
		}
	}
}
