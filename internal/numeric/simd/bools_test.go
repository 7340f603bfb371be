package simd

import "testing"

func TestBooleans(t *testing.T) { atLevels(t, testBooleans) }

func testBooleans(t *testing.T) {
	for _, n := range append([]int{5000}, lengths...) {
		a, b := make([]bool, n), make([]bool, n)
		count := 0
		for i := range n {
			a[i], b[i] = i%3 == 0 || n == 5000, i*i%5 < 2
			if a[i] {
				count++
			}
		}
		and, or, not := make([]bool, n), make([]bool, n), make([]bool, n)
		And(and, a, b)
		Or(or, a, b)
		Not(not, a)
		for i := range n {
			if and[i] != (a[i] && b[i]) || or[i] != (a[i] || b[i]) || not[i] == a[i] {
				t.Fatalf("%v and %v: %v, or: %v; not: %v at %d of %d", a[i], b[i], and[i], or[i], not[i], i, n)
			}
		}
		if got := Count(a); got != count {
			t.Errorf("Count of %d: %d, want %d", n, got, count)
		}
	}
}
