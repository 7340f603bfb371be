package quantize_test

import (
	"math"
	"testing"

	"github.com/weft-ml/weft/internal/opkit/quantize"
)

var types = []quantize.IntType{quantize.Int8, quantize.Uint8, quantize.Int32}

// TestLimits converts the limits of a range to the first and last integer and back.
func TestLimits(t *testing.T) {
	r := quantize.Range{Min: -2, Max: 6}
	for _, n := range types {
		if first, last := n.Of(r.Min, r), n.Of(r.Max, r); first != n.First || last != n.Last {
			t.Errorf("%v: the limits are %d and %d", n, first, last)
		}
		for _, v := range []float32{r.Min, r.Max} {
			if got := n.Value(n.Of(v, r), r); math.Abs(float64(got-v)) > 0.04 {
				t.Errorf("%v: %v becomes %v", n, v, got)
			}
		}
		if low, high := n.Of(r.Min-10, r), n.Of(r.Max+10, r); low != n.First || high != n.Last {
			t.Errorf("%v: numbers outside of the range become %d and %d", n, low, high)
		}
	}
	if got := quantize.Uint8.Unclamped(r.Max+8, r); got <= quantize.Uint8.Last {
		t.Errorf("unclamped %d", got)
	}
}

// TestArrays checks that the conversions of arrays are inverse to each other.
func TestArrays(t *testing.T) {
	r := quantize.Range{Min: -1, Max: 3}
	for _, n := range []quantize.IntType{quantize.Int8, quantize.Uint8} {
		encode, decode := n.Encoder(r), n.Decoder(r)
		for q := n.First; q <= n.Last; q++ {
			if got := encode(decode(q)); got != q {
				t.Errorf("%v: %d becomes %v and then %d", n, q, decode(q), got)
			}
		}
	}
}

func TestEmptyRange(t *testing.T) {
	r := quantize.Range{Min: 5, Max: 5}
	if q, v := quantize.Uint8.Of(7, r), quantize.Uint8.Value(9, r); q != 0 || v != 5 {
		t.Errorf("integer %d and number %v", q, v)
	}
}

// TestProduct checks that a product of integers represents the product of their numbers.
func TestProduct(t *testing.T) {
	ra, rb := quantize.Range{Min: 0, Max: 255}, quantize.Range{Min: 0, Max: 510}
	r := quantize.Product(quantize.Uint8, ra, quantize.Uint8, rb)
	// 10 represents 10 in a and 20 in b, and 100 is their product of integers.
	if got := quantize.Int32.Value(100, r); math.Abs(float64(got-200)) > 1 {
		t.Errorf("100 represents %v, want 200", got)
	}
}

func TestNarrow(t *testing.T) {
	from, to := quantize.Range{Min: -1024, Max: 1024}, quantize.Range{Min: 0, Max: 255}
	narrow := quantize.Narrow(from, to)
	for _, v := range []float32{-100, 0, 100, 255, 300} {
		want := min(max(v, 0), 255)
		if got := narrow(int32(quantize.Int32.Of(v, from))); math.Abs(float64(got)-float64(want)) > 1 {
			t.Errorf("%v becomes %d, want %v", v, got, want)
		}
	}
}
