package simd

import (
	"slices"
	"testing"
)

func checkNear(t *testing.T, what string, got []float32, want []float64, tolerance float64) {
	t.Helper()
	for i, w := range want {
		if !near(float64(got[i]), w, tolerance) {
			t.Fatalf("%s: element %d = %v, want %v", what, i, got[i], w)
		}
	}
}

// TestColumnPasses tests numbers of columns and rows around the sizes of vectors, panels and
// pieces.
func TestColumnPasses(t *testing.T) {
	atLevels(t, func(t *testing.T) {
		for _, size := range [][2]int{{1, 1}, {3, 7}, {64, 16}, {5, 64}, {300, 100}, {2, piece + 5}, {0, 8}, {4, 0}} {
			testColumnPasses(t, size[0], size[1])
		}
	})
}

func testColumnPasses(t *testing.T, rows, cols int) {
	x, dy := random[float32](rows*cols, -3, 5), random[float32](rows*cols, -1, 2)
	var v [4][]float32 // shift, factor, slope, level
	for i := range v {
		v[i] = random[float32](cols, -2, 2)
	}
	sum, squares, dySum, products := slices.Repeat([]float32{1}, cols), make([]float32, cols), make([]float32, cols), make([]float32, cols)
	wantSum, wantSquares := slices.Repeat([]float64{1}, cols), make([]float64, cols)
	wantDYSum, wantProducts := make([]float64, cols), make([]float64, cols)
	wantY, wantDX := make([]float64, len(x)), make([]float64, len(x))
	for i := range x {
		c := i % cols
		d, g := float64(x[i])-float64(v[0][c]), float64(dy[i])
		wantSum[c] += d
		wantSquares[c] += d * d
		wantDYSum[c] += g
		wantProducts[c] += g * d
		wantY[i] = d*float64(v[1][c]) + float64(v[2][c])
		wantDX[i] = g*float64(v[1][c]) + d*float64(v[2][c]) + float64(v[3][c])
	}
	y, dx := make([]float32, len(x)), make([]float32, len(x))
	Moments(sum, squares, x, v[0])
	Products(dySum, products, dy, x, v[0])
	Normalize(y, x, v[0], v[1], v[2])
	NormalizeGrad(dx, dy, x, v[0], v[1], v[2], v[3])
	tolerance := 1e-5 * float64(rows+10)
	checkNear(t, "sum", sum, wantSum, tolerance)
	checkNear(t, "squares", squares, wantSquares, 10*tolerance)
	checkNear(t, "sum of dy", dySum, wantDYSum, tolerance)
	checkNear(t, "products", products, wantProducts, 10*tolerance)
	checkNear(t, "Normalize", y, wantY, 1e-5)
	checkNear(t, "NormalizeGrad", dx, wantDX, 2e-5)
}

func TestNeighbours(t *testing.T) {
	atLevels(t, func(t *testing.T) {
		for _, s := range []struct{ rows, cols, n int }{{1, 1, 1}, {3, 5, 4}, {7, 64, 9}, {2, 100, 11}, {9, 16, 3}, {40, 500, 200}, {0, 4, 2}} {
			a, b := random[float32](s.rows*s.cols, 0, 2), random[float32](s.rows*s.cols, 0, 2)
			stride := s.cols + s.n/2
			x := random[float32](s.rows*stride+s.n, 0, 1)
			gaps := slices.Clone(x)
			MulRows(x, stride, a, b, s.cols)
			sums := make([]float32, s.rows*s.cols)
			WindowSums(sums, s.cols, x, stride, s.n, 0.5, 3)
			wantX, wantSums := make([]float64, len(x)), make([]float64, len(sums))
			for i := range x {
				wantX[i] = float64(gaps[i])
				if row, col := i/stride, i%stride; row < s.rows && col < s.cols {
					wantX[i] = float64(a[row*s.cols+col]) * float64(b[row*s.cols+col])
				}
			}
			for i := range sums {
				total := 0.0
				for _, v := range x[i/s.cols*stride+i%s.cols:][:s.n] {
					total += float64(v)
				}
				wantSums[i] = 3 + total/2
			}
			checkNear(t, "MulRows", x, wantX, 1e-6)
			checkNear(t, "WindowSums", sums, wantSums, 1e-6*float64(s.n*s.n+100))
		}
	})
}
