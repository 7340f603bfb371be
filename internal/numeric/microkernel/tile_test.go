package microkernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

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

func random[T simd.Float](n int) []T {
	s := make([]T, n)
	for i := range s {
		s[i] = T(rand.Float64() - 0.5)
	}
	return s
}

func TestRun(t *testing.T) {
	atLevels(t, func(t *testing.T) {
		for _, inner := range []int{1, 8, 9} {
			testRun[float32](t, inner, 1e-5)
			testRun[float64](t, inner, 1e-14)
		}
	})
}

// testRun computes every tile shape with every number of columns in the last vector: two tiles over
// two outer steps with gaps between them. It compares the results with plain loops.
func testRun[T simd.Float](t *testing.T, inner int, tolerance float64) {
	const outer, gapA, gapB, tiles = 2, 3, 5, 2
	k := Of[T]()
	size := int(unsafe.Sizeof(T(0)))
	for rows := range k.run {
		for vecs, f := range k.run[rows] {
			if f == nil {
				continue
			}
			width := vecs * k.Lanes
			rowA, rowC := outer*(inner+gapA)+1, width+3
			tileA, tileB, tileC := rows*rowA, outer*(inner*width+gapB), rows*rowC
			a, b, bias := random[T](tiles*tileA), random[T](tiles*tileB), random[T](tiles*width)
			for last := 1; last <= k.Lanes; last++ {
				cols := width - k.Lanes + last
				for flags := range Flags(8) {
					c := random[T](tiles * tileC)
					old := append([]T(nil), c...)
					args := &Args{
						A: unsafe.Pointer(&a[0]), B: unsafe.Pointer(&b[0]), C: unsafe.Pointer(&c[0]),
						RowA: rowA * size, StepA: size, StepB: width * size, K: inner, Outer: outer,
						NextA: gapA * size, NextB: gapB * size, RowC: rowC * size,
						Last: last, Flags: flags, Bias: unsafe.Pointer(&bias[0]),
						Tiles: tiles, TileA: tileA * size, TileB: tileB * size, TileC: tileC * size, TileBias: width * size,
					}
					k.Run(args, rows, vecs)
					for i := range old {
						tile, row, col := i/tileC, i%tileC/rowC, i%rowC
						want := float64(old[i])
						if col < cols {
							sum := 0.0
							for q := range outer {
								for x := range inner {
									sum += float64(a[tile*tileA+row*rowA+q*(inner+gapA)+x]) *
										float64(b[tile*tileB+q*(inner*width+gapB)+x*width+col])
								}
							}
							want = end(sum, float64(old[i]), float64(bias[tile*width+col]), flags)
						}
						if math.Abs(float64(c[i])-want) > tolerance {
							t.Fatalf("%T tile of %d rows, %d columns, flags %b: C[%d][%d] = %v, want %v",
								c[i], rows, cols, flags, row, col, c[i], want)
						}
					}
				}
			}
		}
	}
}

func end(sum, old, bias float64, flags Flags) float64 {
	if flags&Add != 0 {
		sum += old
	}
	if flags&Bias != 0 {
		sum += bias
	}
	if flags&Relu != 0 {
		sum = max(sum, 0)
	}
	return sum
}

func TestReluKeepsNaN(t *testing.T) {
	atLevels(t, func(t *testing.T) {
		k := Of[float32]()
		a, b, c := []float32{float32(math.NaN())}, make([]float32, k.Lanes), make([]float32, 1)
		k.Run(&Args{
			A: unsafe.Pointer(&a[0]), B: unsafe.Pointer(&b[0]), C: unsafe.Pointer(&c[0]),
			K: 1, Outer: 1, Last: 1, Flags: Relu, Tiles: 1,
		}, 1, 1)
		if c[0] == c[0] {
			t.Errorf("relu of a sum that is not a number is %v", c[0])
		}
	})
}

func TestPack(t *testing.T) {
	atLevels(t, func(t *testing.T) {
		testPack[float32](t)
		testPack[float64](t)
	})
}

func testPack[T simd.Float](t *testing.T) {
	k := Of[T]()
	for _, n := range []int{1, 2, 7, 8, 16, 17, 40, 270} {
		src := random[T]((n + 64) * (n + 64))
		srcRow := n + 64
		for cols := 1; cols <= 4*k.Lanes; cols++ {
			vecs, _ := k.VecsFor(cols)
			width := vecs * k.Lanes
			dst := random[T](n * width)
			k.PackRows(dst, src, width, srcRow, n, cols)
			checkPack(t, fmt.Sprint("PackRows of ", cols, " columns"), dst, width, n, cols, func(i, j int) T { return src[i*srcRow+j] })
		}
		for rows := 1; rows <= k.Lanes; rows++ {
			dst := random[T](n * k.Lanes)
			k.PackColumns(dst, src, k.Lanes, srcRow, rows, n)
			checkPack(t, fmt.Sprint("PackColumns of ", rows, " rows"), dst, k.Lanes, n, rows, func(i, j int) T { return src[j*srcRow+i] })
		}
	}
}

func checkPack[T simd.Float](t *testing.T, what string, dst []T, width, rows, cols int, want func(i, j int) T) {
	t.Helper()
	for i := range rows {
		for j := range width {
			w := T(0)
			if j < cols {
				w = want(i, j)
			}
			if dst[i*width+j] != w {
				t.Fatalf("%s[%T], %d long: (%d, %d) is %v, want %v", what, w, rows, i, j, dst[i*width+j], w)
			}
		}
	}
}

func BenchmarkRun(b *testing.B) {
	k := Of[float32]()
	for _, s := range [][2]int{{k.Rows, k.Vecs}, {k.Rows / 2, k.Vecs}, {k.Rows, 1}, {k.WideRows, k.WideVecs}} {
		rows, vecs := s[0], s[1]
		if rows == 0 {
			continue
		}
		b.Run(fmt.Sprintf("%dx%d", rows, vecs*k.Lanes), func(b *testing.B) {
			const n = 384
			x, y, z := random[float32](rows*n), random[float32](n*vecs*k.Lanes), random[float32](rows*vecs*k.Lanes)
			args := &Args{
				A: unsafe.Pointer(&x[0]), B: unsafe.Pointer(&y[0]), C: unsafe.Pointer(&z[0]),
				RowA: 4 * n, StepA: 4, StepB: 4 * vecs * k.Lanes, K: n, Outer: 1, RowC: 4 * vecs * k.Lanes, Last: k.Lanes, Tiles: 1,
			}
			for b.Loop() {
				k.Run(args, rows, vecs)
			}
			b.ReportMetric(float64(2*n*rows*vecs*k.Lanes)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GF/s")
		})
	}
}
