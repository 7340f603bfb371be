package openapi

import (
	"fmt"
	"math"
	"math/big"
	"regexp"
	"testing"
)

// The pattern of an integer allows the numbers of its type, the largest included, and no other.
func TestUpTo(t *testing.T) {
	for _, max := range []uint64{10, 19, 100, 907, 1000, 4096, math.MaxInt64, math.MaxUint64} {
		pattern, err := regexp.Compile("^" + upTo(max) + "$")
		if err != nil {
			t.Fatal(err)
		}
		tried := []uint64{0, 1, 9, 10, 11, 99, 100, 101, 899, 999, max / 10, max / 2, max - max/7, max - 1, max}
		if max < 1<<20 {
			for i := range 20 * max {
				tried = append(tried, i)
			}
		}
		for _, n := range tried {
			if got := pattern.MatchString(fmt.Sprint(n)); got != (n <= max) {
				t.Errorf("up to %d: %d matches %s: %t", max, n, pattern, got)
			}
		}
		above := new(big.Int).SetUint64(max)
		for _, more := range []int64{1, 2, 10, 1 << 40, math.MaxInt64} {
			if n := new(big.Int).Add(above, big.NewInt(more)); pattern.MatchString(n.String()) {
				t.Errorf("up to %d: %s matches %s", max, n, pattern)
			}
		}
	}
}
