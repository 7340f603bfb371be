package simd

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestIntegers(t *testing.T) {
	atLevels(t, func(t *testing.T) {
		testIntegers(t, []int32{0, 1, -1, 7, math.MaxInt32, math.MinInt32})
		testIntegers(t, []int64{0, 1, -1, 7, math.MaxInt32, math.MinInt32, math.MaxInt64, math.MinInt64})
	})
}

func testIntegers[T Int](t *testing.T, special []T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range lengths {
		a, b, dst, truth := make([]T, n), make([]T, n), make([]T, n), make([]bool, n)
		for i := range a {
			a[i], b[i] = special[rng.IntN(len(special))], T(rng.Uint64())
			if i%3 == 0 {
				b[i] = special[rng.IntN(len(special))]
			}
		}
		for _, op := range []struct {
			name string
			f    func(dst, a, b []T)
			want func(a, b T) T
		}{
			{"AddInts", AddInts[T], func(a, b T) T { return a + b }},
			{"SubInts", SubInts[T], func(a, b T) T { return a - b }},
			{"MulInts", MulInts[T], func(a, b T) T { return a * b }},
			{"MaxInts", MaxInts[T], func(a, b T) T { return max(a, b) }},
			{"MinInts", MinInts[T], func(a, b T) T { return min(a, b) }},
		} {
			op.f(dst, a, b)
			for i, got := range dst {
				if want := op.want(a[i], b[i]); got != want {
					t.Fatalf("%s(%d, %d) = %d, want %d, at %d of %d", op.name, a[i], b[i], got, want, i, n)
				}
			}
		}
		for name, rows := range map[string]struct {
			f  func(dst, x []T, cols int)
			op func(a, b T) T
		}{
			"SumIntRows": {SumIntRows[T], func(a, b T) T { return a + b }},
			"MaxIntRows": {MaxIntRows[T], func(a, b T) T { return max(a, b) }},
			"MinIntRows": {MinIntRows[T], func(a, b T) T { return min(a, b) }},
		} {
			if n == 0 {
				continue
			}
			x, got := append(slices.Clone(a), b...), make([]T, 2)
			rows.f(got, x, n)
			for i := range got {
				want := x[i*n]
				for _, v := range x[i*n+1 : (i+1)*n] {
					want = rows.op(want, v)
				}
				if got[i] != want {
					t.Fatalf("%s of %d columns: %d, want %d", name, n, got[i], want)
				}
			}
		}
		for p, holds := range map[Predicate]func(a, b T) bool{
			Equal: func(a, b T) bool { return a == b }, NotEqual: func(a, b T) bool { return a != b },
			Less: func(a, b T) bool { return a < b }, LessEqual: func(a, b T) bool { return a <= b },
			Greater: func(a, b T) bool { return a > b }, GreaterEqual: func(a, b T) bool { return a >= b },
		} {
			CompareInts(p, truth, a, b)
			for i, got := range truth {
				if want := holds(a[i], b[i]); got != want {
					t.Fatalf("predicate %d of %d and %d is %v, at %d of %d", p, a[i], b[i], got, i, n)
				}
			}
		}
	}
}

func TestDivisions(t *testing.T) {
	special := []int32{1, -1, 2, -2, 7, -7, 1 << 16, math.MaxInt32, math.MaxInt32 - 1, math.MinInt32, math.MinInt32 + 1}
	floor := func(a, b int64) int64 { return int64(math.Floor(float64(a) / float64(b))) }
	rng := rand.New(rand.NewPCG(1, 2))
	atLevels(t, func(t *testing.T) {
		for _, n := range lengths {
			a, b, dst := make([]int32, n), make([]int32, n), make([]int32, n)
			for i := range a {
				a[i], b[i] = int32(rng.Uint32()), max(1, int32(rng.Uint32()>>rng.IntN(32)))
				switch i % 4 {
				case 0:
					a[i] = special[rng.IntN(len(special))]
				case 1:
					b[i] = special[rng.IntN(len(special))]
				case 2: // next to a multiple
					b[i] = special[rng.IntN(len(special))]
					a[i] = a[i]/b[i]*b[i] + int32(rng.IntN(3)-1)
				}
			}
			for _, op := range []struct {
				name string
				f    func(dst, a, b []int32)
				want func(a, b int64) int64
			}{
				{"Quotients", Quotients, func(a, b int64) int64 { return a / b }},
				{"FloorQuotients", FloorQuotients, floor},
				{"Remainders", Remainders, func(a, b int64) int64 { return a % b }},
				{"FloorRemainders", FloorRemainders, func(a, b int64) int64 { return a - b*floor(a, b) }},
			} {
				op.f(dst, a, b)
				for i, got := range dst {
					if want := int32(op.want(int64(a[i]), int64(b[i]))); got != want {
						t.Fatalf("%s(%d, %d) = %d, want %d, at %d of %d", op.name, a[i], b[i], got, want, i, n)
					}
				}
			}
		}
	})
}

func TestLongConversions(t *testing.T) {
	floats := []float32{0, 1, -1, 1.9, -1.9, 1 << 62, 9.2e18, 1e30, -1e30, -1 << 63, float32(math.NaN()), float32(math.Inf(1))}
	longs := []int64{0, 1, -1, math.MaxInt64, math.MinInt64, 1<<53 + 1, 16777217, -16777219, 1 << 33}
	atLevels(t, func(t *testing.T) {
		for _, n := range lengths {
			x, i64, i32 := make([]float32, n), make([]int64, n), make([]int32, n)
			for i := range n {
				x[i], i64[i], i32[i] = floats[i%len(floats)], longs[i%len(longs)], int32(longs[i%len(longs)])
			}
			truncated, rounded, narrow, wide := make([]int64, n), make([]float32, n), make([]int32, n), make([]int64, n)
			ToInt64(truncated, x)
			FromInt64(rounded, i64)
			Int32FromInt64(narrow, i64)
			Int64FromInt32(wide, i32)
			for i := range n {
				want := int64(math.MinInt64)
				if v := x[i]; v >= -1<<63 && v < 1<<63 {
					want = int64(v)
				}
				if truncated[i] != want || rounded[i] != float32(i64[i]) || narrow[i] != int32(i64[i]) || wide[i] != int64(i32[i]) {
					t.Fatalf("%v to %d, %d to %v and %d, %d to %d, at %d of %d", x[i], truncated[i], i64[i], rounded[i], narrow[i], i32[i], wide[i], i, n)
				}
			}
		}
	})
}
