package simd

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestAddListed(t *testing.T) {
	atLevels(t, func(t *testing.T) {
		testAddListed[float32](t, 1e-5)
		testAddListed[float64](t, 1e-14)
	})
}

func testAddListed[T Float](t *testing.T, tolerance float64) {
	const rows = 11
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range lengths {
		for _, count := range []int{0, 1, 5, 40} {
			x, coef, list := random[T](rows*n, -1, 1), random[T](count, -1, 1), make([]int64, 3*count)
			for i := range list {
				list[i] = rng.Int64N(rows)
			}
			y, check := guarded[T](n, -1, 1)
			want := make([]float64, n)
			for j, v := range y {
				want[j] = float64(v)
				for i, c := range coef {
					want[j] += float64(c) * float64(x[int(list[3*i])*n+j])
				}
			}
			AddListed(y, x, list, 3, coef)
			check(t)
			for j, got := range y {
				if math.Abs(float64(got)-want[j]) > tolerance {
					t.Fatalf("element %d of %d, sum of %d rows of %T: %v, want %v", j, n, count, got, got, want[j])
				}
			}
		}
	}
}
