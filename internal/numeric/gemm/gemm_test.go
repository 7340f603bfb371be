package gemm

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weft-ml/weft/internal/numeric/microkernel"
	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/numeric/simd"
)

func atLevels(t *testing.T, test func(t *testing.T)) {
	for _, l := range simd.Levels() {
		t.Run(l.String(), func(t *testing.T) {
			old := simd.Force(l)
			defer simd.Force(old)
			test(t)
		})
	}
}

// matrix returns a matrix of random numbers. If transposed, it is stored by columns. gap unused
// elements follow each line.
func matrix[T simd.Float](rows, cols int, transposed bool, gap int) Matrix[T] {
	if transposed {
		return matrix[T](cols, rows, false, gap).T()
	}
	m := Matrix[T]{make([]T, max(0, rows*(cols+gap)-gap)), rows, cols, cols + gap, 1}
	for i := range m.Data {
		m.Data[i] = T(rand.Float64() - 0.5)
	}
	return m
}

// reference computes the product in float64.
func reference[T simd.Float](c, a, b Matrix[T], o Options[T]) []float64 {
	alpha := float64(o.Alpha)
	if alpha == 0 {
		alpha = 1
	}
	var want []float64
	for i := range c.Rows {
		row := make([]float64, c.Cols)
		for k := range a.Cols {
			x := float64(a.Data[a.at(i, k)])
			for j := range row {
				row[j] += x * float64(b.Data[b.at(k, j)])
			}
		}
		for j := range row {
			row[j] *= alpha
			if o.Beta != 0 {
				row[j] += float64(o.Beta) * float64(c.Data[c.at(i, j)])
			}
			if o.Bias != nil {
				row[j] += float64(o.Bias[j])
			}
			if o.Relu {
				row[j] = max(row[j], 0)
			}
		}
		want = append(want, row...)
	}
	return want
}

// checkMul multiplies and compares the results. It also checks that the elements in the gaps of C
// stay unchanged.
func checkMul[T simd.Float](t *testing.T, c, a, b Matrix[T], o Options[T]) {
	t.Helper()
	want := reference(c, a, b, o)
	old := slices.Clone(c.Data)
	Mul(c, a, b, o)
	tolerance := 1e-6 * math.Sqrt(float64(a.Cols)+1)
	if _, ok := any(T(0)).(float64); ok {
		tolerance *= 1e-8
	}
	for i := range c.Rows {
		for j := range c.Cols {
			got := float64(c.Data[c.at(i, j)])
			old[c.at(i, j)] = c.Data[c.at(i, j)]
			if w := want[i*c.Cols+j]; !(math.Abs(got-w) <= tolerance) {
				t.Fatalf("%v times %v of %T: (%d, %d) is %v, want %v", a, b, T(0), i, j, got, w)
			}
		}
	}
	if !slices.Equal(old, c.Data) {
		t.Fatalf("%v times %v of %T wrote between the rows of C", a, b, T(0))
	}
}

var shapes = [][3]int{
	{0, 3, 2}, {3, 0, 2}, {3, 2, 0}, {1, 1, 1}, {3, 5, 7}, {1, 100, 33}, {100, 1, 33}, {1, 40, 300}, {40, 1, 300},
	{14, 32, 16}, {15, 33, 17}, {13, 31, 40}, {29, 65, 3}, {64, 64, 64}, {100, 10, 130}, {10, 100, 20}, {129, 17, 33},
	{2, 300, 5}, {300, 2, 9},
}

// large holds shapes that take several blocks in each dimension.
var large = [][3]int{{250, 33, 450}, {18, 660, 400}, {20, 1300, 20}, {40, 40, 1100}, {170, 650, 12}}

func TestMul(t *testing.T) {
	atLevels(t, func(t *testing.T) {
		for _, s := range shapes {
			testMul[float32](t, s, 0, 1, 2, 3, 4, 5, 6, 7)
			testMul[float64](t, s, 0, 1, 2, 3, 4, 5, 6, 7)
		}
		for _, s := range large {
			testMul[float32](t, s, 0, 3)
			testMul[float64](t, s, 1)
		}
	})
}

// TestMulDeep multiplies with the tiles of either kind of processor. The shapes include widths at
// which wide tiles leave one, two or three vectors, and an A that is copied.
func TestMulDeep(t *testing.T) {
	atLevels(t, func(t *testing.T) {
		k := microkernel.Of[float32]()
		defer func(old bool) { k.Deep = old }(k.Deep)
		for _, k.Deep = range []bool{false, true} {
			for _, s := range [][3]int{{100, 266, 300}, {100, 290, 70}, {15, 310, 400}, {7, 64, 200}, {200, 100, 200}, {66, 70, 1024}, {1024, 70, 66}} {
				testMul[float32](t, s, 0, 1, 2)
			}
		}
	})
}

// testMul multiplies matrices of one shape, stored in the given ways: bits 0, 1 and 2 mean that A,
// B and C are transposed.
func testMul[T simd.Float](t *testing.T, s [3]int, ways ...int) {
	m, n, k := s[0], s[1], s[2]
	for _, v := range ways {
		transA, transB, transC := v&1 != 0, v&2 != 0, v&4 != 0
		a, b, c := matrix[T](m, k, transA, v), matrix[T](k, n, transB, 2*v), matrix[T](m, n, transC, v)
		checkMul(t, c, a, b, Options[T]{})
	}
}

func TestMulOptions(t *testing.T) {
	bias := matrix[float32](1, 2000, false, 0).Data
	options := []Options[float32]{
		{Alpha: -2}, {Beta: 1}, {Alpha: 3, Beta: -0.5}, {Bias: bias}, {Relu: true},
		{Alpha: 2, Beta: 0.25, Bias: bias, Relu: true},
	}
	atLevels(t, func(t *testing.T) {
		for _, o := range options {
			for i, s := range append(slices.Clone(shapes), large...) {
				for v := range 8 {
					m, n, k := s[0], s[1], s[2]
					if m*n*k > 1<<18 && v != i%4 {
						continue
					}
					a, b := matrix[float32](m, k, v&1 != 0, 0), matrix[float32](k, n, v&2 != 0, 0)
					checkMul(t, matrix[float32](m, n, v&4 != 0, 3), a, b, o)
				}
			}
		}
	})
}

// TestMulIgnoresOldC checks that a C of NaN is not read if Beta is 0.
func TestMulIgnoresOldC(t *testing.T) {
	nan := float32(math.NaN())
	atLevels(t, func(t *testing.T) {
		for _, s := range shapes {
			a, b, c := matrix[float32](s[0], s[2], false, 0), matrix[float32](s[2], s[1], false, 0), matrix[float32](s[0], s[1], false, 0)
			for i := range c.Data {
				c.Data[i] = nan
			}
			checkMul(t, c, a, b, Options[float32]{})
		}
	})
}

// TestMulPageStrides multiplies matrices whose rows are a page apart, for which A is copied.
func TestMulPageStrides(t *testing.T) {
	atLevels(t, func(t *testing.T) {
		a, b := matrix[float32](70, 1024, false, 0), matrix[float32](1024, 150, false, 0)
		checkMul(t, matrix[float32](70, 150, false, 0), a, b, Options[float32]{})
		a, b = matrix[float32](1024, 70, false, 0).T(), matrix[float32](70, 150, false, 0)
		checkMul(t, matrix[float32](1024, 150, false, 0), matrix[float32](1024, 70, true, 0), b, Options[float32]{})
		checkMul(t, matrix[float32](70, 150, false, 0), a, matrix[float32](1024, 150, true, 0), Options[float32]{})
	})
}

func TestMulSameBitsOnAnyNumberOfThreads(t *testing.T) {
	a, b := matrix[float32](300, 500, false, 0), matrix[float32](500, 420, true, 0)
	var want []float32
	for threads := range 5 {
		old := parallel.SetThreads(threads + 1)
		c := matrix[float32](300, 420, false, 0)
		Mul(c, a, b, Options[float32]{Relu: true})
		parallel.SetThreads(old)
		if want == nil {
			want = c.Data
		} else if !slices.Equal(c.Data, want) {
			t.Errorf("the product with %d threads differs from that with one", threads+1)
		}
	}
}

func TestMulChecks(t *testing.T) {
	tests := map[string]struct{ c, a, b Matrix[float32] }{
		"inner dimensions": {matrix[float32](2, 3, false, 0), matrix[float32](2, 4, false, 0), matrix[float32](5, 3, false, 0)},
		"rows of C":        {matrix[float32](1, 3, false, 0), matrix[float32](2, 4, false, 0), matrix[float32](4, 3, false, 0)},
		"short data":       {matrix[float32](2, 3, false, 0), Dense(make([]float32, 7), 2, 4), matrix[float32](4, 3, false, 0)},
		"strides":          {matrix[float32](2, 3, false, 0), Matrix[float32]{make([]float32, 99), 2, 4, 10, 2}, matrix[float32](4, 3, false, 0)},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("Mul did not panic")
				}
			}()
			Mul(tt.c, tt.a, tt.b, Options[float32]{})
		})
	}
}

func TestGeneric(t *testing.T) {
	testGeneric[int32](t)
	testGeneric[uint8](t)
	testGeneric[complex64](t)
}

func testGeneric[T Number](t *testing.T) {
	for _, s := range shapes {
		for v := range 16 {
			m, n, k := s[0], s[1], s[2]
			a, b, c := small[T](m, k, v&1 != 0), small[T](k, n, v&2 != 0), small[T](m, n, v&4 != 0)
			var want []T
			for i := range m {
				for j := range n {
					var sum T
					if v&8 != 0 {
						sum = c.Data[c.at(i, j)]
					}
					for x := range k {
						sum += a.Data[a.at(i, x)] * b.Data[b.at(x, j)]
					}
					want = append(want, sum)
				}
			}
			Generic(c, a, b, v&8 != 0)
			for i, w := range want {
				if got := c.Data[c.at(i/n, i%n)]; got != w {
					t.Fatalf("Generic[%T] of %v: element %d is %v, want %v", w, s, i, got, w)
				}
			}
		}
	}
}

// small returns a matrix of small integers.
func small[T Number](rows, cols int, transposed bool) Matrix[T] {
	if transposed {
		return small[T](cols, rows, false).T()
	}
	m := Dense(make([]T, rows*cols), rows, cols)
	for i := range m.Data {
		for range i % 5 {
			m.Data[i]++
		}
	}
	return m
}

func TestHalf(t *testing.T) {
	// A type of halves: n represents n/2.
	type half int32
	widen := func(dst []float32, src []half) {
		for i, x := range src {
			dst[i] = float32(x) / 2
		}
	}
	narrow := func(dst []half, src []float32) {
		for i, x := range src {
			dst[i] = half(x * 2)
		}
	}
	a, b := Dense([]half{1, 2, 3, 4, 5, 6}, 2, 3), Dense([]half{2, 4, 6, 8, 10, 12}, 3, 2)
	for _, transposed := range []bool{false, true} {
		c := Dense(make([]half, 4), 2, 2)
		want := []half{22, 28, 49, 64} // of the doubled numbers [[44 56] [98 128]]/4*2
		if transposed {
			c = c.T()
			want = []half{22, 49, 28, 64}
		}
		Half(c, a, b, widen, narrow)
		if !slices.Equal(c.Data, want) {
			t.Errorf("product is %v, want %v", c.Data, want)
		}
	}
}

// TestBFloat16 compares with sums in float64, for an even and an odd number of terms and all
// layouts of the operands.
func TestBFloat16(t *testing.T) {
	widen := func(dst []float32, src []uint16) {
		for i, x := range src {
			dst[i] = math.Float32frombits(uint32(x) << 16)
		}
	}
	narrow := func(dst []uint16, src []float32) {
		for i, x := range src {
			dst[i] = uint16((math.Float32bits(x) + 1<<15) >> 16)
		}
	}
	value := func(m Matrix[uint16], i, j int) float64 {
		var x [1]float32
		widen(x[:], m.Data[m.at(i, j):][:1])
		return float64(x[0])
	}
	random := func(rows, cols int, transposed bool) Matrix[uint16] {
		m := Dense(make([]uint16, rows*cols), rows, cols)
		if transposed {
			m = Dense(m.Data, cols, rows).T()
		}
		for i := range m.Data {
			narrow(m.Data[i:i+1], []float32{rand.Float32() - 0.5})
		}
		return m
	}
	defer func(old bool) { microkernel.SlowPairs = old }(microkernel.SlowPairs)
	microkernel.SlowPairs = false // the kernels for pairs are correct even where they are slow
	atLevels(t, func(t *testing.T) {
		shapes := [][3]int{{30, 40, 50}, {17, 33, 70}, {20, 1, 40}, {1, 64, 64}, {64, 65, 1}, {3, 1500, 40}}
		for rows := range 14 { // every tile height
			shapes = append(shapes, [3]int{rows + 1, 24, 40})
		}
		for _, s := range shapes {
			for kinds := range 4 {
				a, b := random(s[0], s[1], kinds&1 != 0), random(s[1], s[2], kinds&2 != 0)
				c := Dense(make([]uint16, s[0]*s[2]), s[0], s[2])
				BFloat16(c, a, b, widen, narrow)
				for i := range c.Rows {
					for j := range c.Cols {
						want := 0.0
						for k := range a.Cols {
							want += value(a, i, k) * value(b, k, j)
						}
						if got := value(c, i, j); math.Abs(got-want) > 1e-2*math.Abs(want)+1e-4 {
							t.Fatalf("%v, kinds %b: element (%d, %d) is %v, want %v", s, kinds, i, j, got, want)
						}
					}
				}
			}
		}
	})
}

func BenchmarkMul(b *testing.B) {
	for _, bb := range []struct {
		kind    string
		m, k, n int
	}{
		{"nn", 64, 64, 64}, {"nn", 128, 128, 128}, {"nn", 256, 256, 256}, {"nn", 512, 512, 512}, {"nn", 1024, 1024, 1024},
		{"nn", 100, 784, 100}, {"tn", 784, 100, 100}, {"nt", 100, 100, 784}, {"nn", 128, 784, 512}, {"tn", 784, 128, 512},
		{"nt", 128, 512, 784}, {"nn", 128, 512, 10}, {"tn", 512, 128, 10}, {"nt", 128, 10, 512},
		{"nn", 128, 64, 128}, {"nn", 1, 784, 512}, {"nn", 784, 512, 1}, {"nn", 8, 8, 8}, {"nn", 2, 3, 4},
	} {
		for _, threads := range []int{1, 2} {
			b.Run(fmt.Sprintf("%s/%dx%dx%d/threads=%d", bb.kind, bb.m, bb.k, bb.n, threads), func(b *testing.B) {
				defer parallel.SetThreads(parallel.SetThreads(threads))
				x := matrix[float32](bb.m, bb.k, bb.kind == "tn", 0)
				y := matrix[float32](bb.k, bb.n, bb.kind == "nt", 0)
				z := matrix[float32](bb.m, bb.n, false, 0)
				for b.Loop() {
					Mul(z, x, y, Options[float32]{})
				}
				work := 2 * float64(bb.m*bb.n*bb.k) * float64(b.N)
				b.ReportMetric(work/b.Elapsed().Seconds()/1e9, "GF/s")
			})
		}
	}
}
