package gemm

import (
	"math"
	"slices"
	"testing"

	"github.com/weft-ml/weft/internal/numeric/simd"
)

func TestMulStack(t *testing.T) {
	atLevels(t, func(t *testing.T) {
		for _, s := range [][3]int{{2, 2, 1}, {4, 4, 4}, {3, 5, 7}, {16, 16, 16}, {20, 20, 64}, {17, 33, 9}, {29, 65, 3}, {2, 16, 1000}} {
			for ways := range 4 {
				testMulStack[float32](t, s, ways)
				testMulStack[float64](t, s, ways)
			}
		}
	})
}

// testMulStack multiplies stacks that end with their last matrix. Bits 0 and 1 of ways mean that A
// and B are transposed.
func testMulStack[T simd.Float](t *testing.T, s [3]int, ways int) {
	t.Helper()
	rows, cols, k := s[0], s[1], s[2]
	stack := func(rows, cols, n, step int, transposed bool) Stack[T] {
		m := matrix[T](rows, cols, transposed, 0)
		m.Data = matrix[T](1, (n-1)*step+rows*cols, false, 0).Data
		return Stack[T]{m, step}
	}
	for _, n := range []int{1, 2, 3, 50} {
		for _, steps := range [][2]int{{rows * k, k * cols}, {0, k*cols + 3}, {rows*k + 1, 0}} {
			a, b := stack(rows, k, n, steps[0], ways&1 != 0), stack(k, cols, n, steps[1], ways&2 != 0)
			c := stack(rows, cols, n, rows*cols+2, false)
			gaps := slices.Clone(c.Data)
			MulStack(c, a, b, n)
			for i := range n {
				ai, bi, ci := a.last(i+1), b.last(i+1), c.last(i+1)
				for j, want := range reference(ci, ai, bi, Options[T]{}) {
					if got := float64(ci.Data[j]); !(math.Abs(got-want) <= 1e-6*math.Sqrt(float64(k)+1)) {
						t.Fatalf("product %d of %d, %v times %v of %T: element %d is %v, want %v", i, n, ai, bi, T(0), j, got, want)
					}
				}
				if gap := i*c.Step + rows*cols; i < n-1 && !slices.Equal(c.Data[gap:gap+2], gaps[gap:gap+2]) {
					t.Fatalf("%d products of %v wrote between them", n, s)
				}
			}
			first := slices.Clone(c.Data)
			for i := range n { // separate products have the same bits
				last := func(s Stack[T]) Stack[T] { return Stack[T]{s.last(i + 1), s.Step} }
				MulStack(last(c), last(a), last(b), 1)
			}
			if !slices.Equal(first, c.Data) {
				t.Fatalf("%d products of %v differ from the same one by one", n, s)
			}
		}
	}
}
