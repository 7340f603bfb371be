package simd

import (
	"math"
	"slices"
	"testing"
)

func near(got, want, tolerance float64) bool { return math.Abs(got-want) <= tolerance }

func TestReductions(t *testing.T) {
	atLevels(t, func(t *testing.T) {
		testReductions[float32](t, 1e-6)
		testReductions[float64](t, 1e-14)
	})
}

func testReductions[T Float](t *testing.T, tolerance float64) {
	for _, n := range lengths {
		a, b := random[T](n, -5, 4), random[T](n+1, -1, 2)[1:]
		var sum, dot, magnitude float64
		largest, least := math.Inf(-1), math.Inf(1)
		for i, x := range a {
			sum += float64(x)
			dot += float64(x) * float64(b[i])
			magnitude += math.Abs(float64(x))
			largest, least = max(largest, float64(x)), min(least, float64(x))
		}
		if got := Sum(a); !near(float64(got), sum, tolerance*magnitude) {
			t.Errorf("Sum[%T] of %d = %v, want %v", T(0), n, got, sum)
		}
		if got := Dot(a, b); !near(float64(got), dot, 2*tolerance*magnitude) {
			t.Errorf("Dot[%T] of %d = %v, want %v", T(0), n, got, dot)
		}
		if got := MaxOf(a); float64(got) != largest {
			t.Errorf("MaxOf[%T] of %d = %v, want %v", T(0), n, got, largest)
		}
		if got := MinOf(a); float64(got) != least {
			t.Errorf("MinOf[%T] of %d = %v, want %v", T(0), n, got, least)
		}
	}
}

func TestRows(t *testing.T) {
	atLevels(t, func(t *testing.T) {
		testRows[float32](t, 1e-6)
		testRows[float64](t, 1e-14)
	})
}

// testRows compares the row reductions with those of slices, and products with products in float64.
func testRows[T Float](t *testing.T, tolerance float64) {
	for _, cols := range lengths[1:] {
		const rows = 5
		x := random[T](rows*cols, 0.99, 1.01)
		for _, r := range []struct {
			name string
			rows func(dst, x []T, cols int)
			one  func(x []T) T
		}{{"Sum", SumRows[T], Sum[T]}, {"Max", MaxRows[T], MaxOf[T]}, {"Min", MinRows[T], MinOf[T]}, {"Prod", ProdRows[T], Prod[T]}} {
			dst, check := guarded[T](rows, 0, 0)
			r.rows(dst, x, cols)
			check(t)
			for i, got := range dst {
				if want := r.one(x[i*cols:][:cols]); got != want {
					t.Errorf("%sRows[%T] of %d columns = %v in row %d, want %v", r.name, want, cols, got, i, want)
				}
			}
		}
		want := 1.0
		for _, v := range x {
			want *= float64(v)
		}
		if got := Prod(x); !near(float64(got)/want, 1, tolerance*float64(len(x))) {
			t.Errorf("Prod[%T] of %d = %v, want %v", got, len(x), got, want)
		}
	}
}

func TestExtremeColumns(t *testing.T) {
	atLevels(t, func(t *testing.T) {
		for _, cols := range []int{1, 5, 16, 31, 64, 67, 128, 200, 300} {
			for _, rows := range []int{0, 1, 2, 7, 33, 300} {
				x := random[float32](rows*cols, -9, 9)
				if rows > 2 {
					x[2*cols] = float32(math.NaN())
				}
				for _, f := range []struct {
					columns func(acc, x []float32, stride int)
					two     func(dst, a, b []float32)
				}{{MaxPanel[float32], Max[float32]}, {MinPanel[float32], Min[float32]}} {
					acc, check := guarded[float32](cols, 1, 1)
					f.columns(acc, x, cols)
					check(t)
					want := random[float32](cols, 1, 1)
					for i := range rows {
						f.two(want, want, x[i*cols:][:cols])
					}
					for j, w := range want {
						if acc[j] != w && (w == w || acc[j] == acc[j]) {
							t.Fatalf("column %d of %d rows and %d columns is %v, want %v", j, rows, cols, acc[j], w)
						}
					}
				}
			}
		}
	})
}

func TestSumOfManyElements(t *testing.T) {
	n := 1<<24 + 3
	if *billion {
		n = 1_000_000_000
	}
	x := make([]float32, n)
	for i := range x {
		x[i] = 0.1
	}
	want := float64(float32(0.1)) * float64(len(x))
	atLevels(t, func(t *testing.T) {
		if got := Sum(x); math.Abs(float64(got)/want-1) > 1e-6 {
			t.Errorf("sum of %d times 0.1 = %v, want %v", len(x), got, want)
		}
	})
}

func TestColumns(t *testing.T) {
	atLevels(t, func(t *testing.T) {
		testColumns[float32](t, 2e-6)
		testColumns[float64](t, 1e-14)
	})
}

func testColumns[T Float](t *testing.T, tolerance float64) {
	for _, cols := range []int{1, 5, 8, 16, 31, 64, 67, 128, 200, piece + 9} {
		for _, rows := range []int{0, 1, 2, 7, 33, 300} {
			if rows*cols > 1<<19 {
				continue
			}
			x, v := random[T](rows*cols, -2, 2), random[T](cols+1, -2, 2)[1:]
			acc, check := guarded[T](cols, 1, 1)
			SumColumns(acc, x)
			check(t)
			sum, checkSum := guarded[T](rows*cols, 0, 0)
			AddRow(sum, x, v)
			checkSum(t)
			product, checkProduct := guarded[T](rows*cols, 0, 0)
			MulRow(product, x, v)
			checkProduct(t)
			for j := range cols {
				want := 1.0
				for i := range rows {
					at := i*cols + j
					want += float64(x[at])
					if sum[at] != x[at]+v[j] || product[at] != x[at]*v[j] {
						t.Fatalf("AddRow or MulRow[%T] of %d rows and %d columns is wrong at %d, %d", T(0), rows, cols, i, j)
					}
				}
				if !near(float64(acc[j]), want, tolerance*float64(rows+1)) {
					t.Fatalf("SumColumns[%T] of %d rows and %d columns = %v at %d, want %v", T(0), rows, cols, acc[j], j, want)
				}
			}
		}
	}
}

func TestPanels(t *testing.T) {
	atLevels(t, func(t *testing.T) {
		for _, cols := range []int{1, 16, 67, wideRow, 600} {
			for _, rows := range []int{1, 2, 65, 300} {
				stride := cols + 13
				x := random[float32]((rows-1)*stride+cols, -2, 2)
				acc, check := guarded[float32](cols, 1, 1)
				SumPanel(acc, x, stride)
				check(t)
				most := slices.Repeat([]float32{1}, cols)
				MaxPanel(most, x, stride)
				for j := range cols {
					want, largest := 1.0, float32(1)
					for i := range rows {
						want += float64(x[i*stride+j])
						largest = max(largest, x[i*stride+j])
					}
					if !near(float64(acc[j]), want, 2e-6*float64(rows+1)) || most[j] != largest {
						t.Fatalf("column %d of %d rows and %d columns: %v, largest %v, want %v, %v", j, rows, cols, acc[j], most[j], want, largest)
					}
				}
			}
		}
	})
}

func TestSoftmax(t *testing.T) {
	atLevels(t, func(t *testing.T) {
		testSoftmax[float32](t, 1e-6)
		testSoftmax[float64](t, 1e-14)
	})
}

func testSoftmax[T Float](t *testing.T, tolerance float64) {
	for _, cols := range lengths[1:] {
		rows := 3
		if cols == 10 || cols == 1 {
			rows = 2 * piece
		}
		x := random[T](rows*cols, -60, 60)
		soft, check := guarded[T](rows*cols, 0, 0)
		largest, checkLargest := guarded[T](rows, 0, 0)
		sum, checkSum := guarded[T](rows, 0, 0)
		SoftmaxRows(soft, x, cols, largest, sum)
		check(t)
		checkLargest(t)
		checkSum(t)
		logs, check := guarded[T](rows*cols, 0, 0)
		logSum := make([]T, rows)
		LogSoftmaxRows(logs, x, cols, make([]T, rows), logSum)
		check(t)
		for i := range rows {
			most, total := math.Inf(-1), 0.0
			for _, v := range x[i*cols:][:cols] {
				most = max(most, float64(v))
			}
			for _, v := range x[i*cols:][:cols] {
				total += math.Exp(float64(v) - most)
			}
			if float64(largest[i]) != most || !near(float64(sum[i])/total, 1, 10*tolerance) ||
				!near(float64(logSum[i]), math.Log(total), 10*tolerance) {
				t.Fatalf("SoftmaxRows[%T] of %d: largest %v, sum %v, its logarithm %v; want %v, %v", sum[i], cols, largest[i], sum[i], logSum[i], most, total)
			}
			for j, v := range x[i*cols:][:cols] {
				at := i*cols + j
				if want := math.Exp(float64(v)-most) / total; !near(float64(soft[at]), want, tolerance) {
					t.Fatalf("SoftmaxRows[%T] of %d = %v at %d, want %v", v, cols, soft[at], at, want)
				}
				if want := float64(v) - most - math.Log(total); !near(float64(logs[at]), want, tolerance*130) {
					t.Fatalf("LogSoftmaxRows[%T] of %d = %v at %d, want %v", v, cols, logs[at], at, want)
				}
			}
		}
	}
}

func TestSoftmaxOfNaNAndInfinity(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	tests := []struct{ x, want []float32 }{
		{[]float32{1, nan, 2}, []float32{nan, nan, nan}},
		{[]float32{1, 2, nan}, []float32{nan, nan, nan}},
		{[]float32{-inf, -inf}, []float32{nan, nan}},
		{[]float32{-inf, 0, 0}, []float32{0, 0.5, 0.5}},
		{[]float32{inf, 0}, []float32{nan, 0}},
	}
	atLevels(t, func(t *testing.T) {
		for _, tt := range tests {
			got, largest, sum := make([]float32, len(tt.x)), make([]float32, 1), make([]float32, 1)
			SoftmaxRows(got, tt.x, len(tt.x), largest, sum)
			for i, w := range tt.want {
				if !(ulps(got[i], float64(w)) < 2) && w == w {
					continue // e^-inf over an infinite sum: 0 or NaN
				}
				if (w != w) != (got[i] != got[i]) {
					t.Errorf("Softmax(%v) = %v, want %v", tt.x, got, tt.want)
				}
			}
		}
	})
}

func TestMatrixVector(t *testing.T) {
	atLevels(t, func(t *testing.T) {
		testMatrixVector[float32](t, 1e-5)
		testMatrixVector[float64](t, 1e-13)
	})
}

func testMatrixVector[T Float](t *testing.T, tolerance float64) {
	for _, rows := range []int{0, 1, 3, 4, 5, 8, 17} {
		for _, cols := range append([]int{sumPiece + 77}, lengths[:20]...) {
			stride := cols + 3
			x, coef, y := random[T](rows*stride, -2, 2), random[T](rows, -2, 2), random[T](cols, -2, 2)
			sum, check := guarded[T](cols, 1, 1)
			AddRows(sum, coef, x, stride)
			check(t)
			for j := range sum {
				want := 1.0
				for i := range rows {
					want += float64(coef[i]) * float64(x[i*stride+j])
				}
				if !near(float64(sum[j]), want, tolerance) {
					t.Fatalf("AddRows[%T] of %d rows and %d columns is %v at %d, want %v", T(0), rows, cols, sum[j], j, want)
				}
			}
			dots, check := guarded[T](rows, 1, 1)
			DotRows(dots, x, stride, y)
			check(t)
			for i := range dots {
				want := 0.0
				for j := range y {
					want += float64(x[i*stride+j]) * float64(y[j])
				}
				if !near(float64(dots[i]), want, tolerance*float64(cols+1)) {
					t.Fatalf("DotRows[%T] of %d rows and %d columns is %v at %d, want %v", T(0), rows, cols, dots[i], i, want)
				}
			}
		}
	}
}
