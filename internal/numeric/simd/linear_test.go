package simd

import (
	"math"
	"testing"
)

func TestSelect(t *testing.T) {
	atLevels(t, func(t *testing.T) {
		testSelect[float32](t)
		testSelect[float64](t)
	})
}

func testSelect[T Float](t *testing.T) {
	for _, n := range lengths {
		x, a, b := random[T](n, -1, 1), random[T](n, -1, 1), random[T](n, -1, 1)
		for i := range x {
			switch i % 5 {
			case 0:
				x[i] = 0.25
			case 1:
				x[i] = T(math.NaN())
			}
		}
		dst, check := guarded[T](n, 0, 1)
		Leaky(dst, a, x, 0.5)
		check(t)
		for i, got := range dst {
			want := a[i]
			if !(x[i] > 0) {
				want *= 0.5
			}
			if got != want {
				t.Fatalf("Leaky of %v by %v: %v, want %v, at %d of %d", a[i], x[i], got, want, i, n)
			}
		}
		for name, f := range map[string]struct {
			run   func(dst, x []T, bound T, a, b []T)
			first func(x T) bool
		}{
			"SelectLess":    {SelectLess[T], func(x T) bool { return x < 0.25 }},
			"SelectGreater": {SelectGreater[T], func(x T) bool { return x > 0.25 }},
		} {
			f.run(dst, x, 0.25, a, b)
			check(t)
			for i, got := range dst {
				want := b[i]
				if f.first(x[i]) {
					want = a[i]
				}
				if got != want {
					t.Fatalf("%s of %v: %v, want %v, at %d of %d", name, x[i], got, want, i, n)
				}
			}
		}
	}
}
