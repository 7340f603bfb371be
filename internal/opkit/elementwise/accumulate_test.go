package elementwise_test

import (
	"math"
	"slices"
	"testing"

	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/tensor"
)

func TestAccumulate(t *testing.T) {
	nan := float32(math.NaN())
	for _, c := range []struct {
		op           elementwise.Op
		acc, x, want []float32
	}{
		{elementwise.Assign, []float32{1, 2}, []float32{3, 4}, []float32{3, 4}},
		{elementwise.Add, []float32{1, 2}, []float32{3, 4}, []float32{4, 6}},
		{elementwise.Sub, []float32{1, 2}, []float32{3, 5}, []float32{-2, -3}},
		{elementwise.Mul, []float32{1, 2}, []float32{3, 4}, []float32{3, 8}},
		{elementwise.Div, []float32{1, 2}, []float32{2, 8}, []float32{0.5, 0.25}},
		{elementwise.Min, []float32{1, 4, nan, 1}, []float32{3, 2, 1, nan}, []float32{1, 2, nan, 1}},
		{elementwise.Max, []float32{1, 4, nan, 1}, []float32{3, 2, 1, nan}, []float32{3, 4, nan, 1}},
		{elementwise.Minimum, []float32{1, 4, nan, 1}, []float32{3, 2, 1, nan}, []float32{1, 2, nan, nan}},
		{elementwise.Maximum, []float32{1, 4, nan, 1}, []float32{3, 2, 1, nan}, []float32{3, 4, nan, nan}},
	} {
		acc, x := tensor.Vector(slices.Clone(c.acc)...), tensor.Vector(c.x...)
		elementwise.Accumulate(c.op, &acc, &x)
		same := func(a, b float32) bool { return a == b || a != a && b != b }
		if got := tensor.Values[float32](&acc); !slices.EqualFunc(got, c.want, same) {
			t.Errorf("op %d: %v and %v make %v, want %v", c.op, c.acc, c.x, got, c.want)
		}
	}
}

// TestAccumulateShort checks the extremes of a 16-bit type, which are computed in float32.
func TestAccumulateShort(t *testing.T) {
	half := tensor.Float16Of
	acc := tensor.Vector(half(1), half(4), half(float32(math.NaN())))
	x := tensor.Vector(half(3), half(2), half(5))
	elementwise.Accumulate(elementwise.Maximum, &acc, &x)
	got := tensor.Values[tensor.Float16Elem](&acc)
	if got[0] != half(3) || got[1] != half(4) || got[2].Float32() == got[2].Float32() {
		t.Errorf("maximum %v", got)
	}
}

func TestAccumulateRows(t *testing.T) {
	for _, c := range []struct {
		name string
		x    tensor.Tensor
		rows []int64
		want []int32
	}{
		{"a row listed twice", tensor.Vector[int32](1, 2, 3, 4, 5, 6), []int64{1, 0, 1}, []int32{13, 24, 36, 48}},
		{"a skipped row", tensor.Vector[int32](1, 2, 3, 4), []int64{-1, 0}, []int32{13, 24, 30, 40}},
		{"a scalar", tensor.Scalar[int32](5), []int64{1, 1}, []int32{10, 20, 40, 50}},
		{"no rows", tensor.Vector[int32](), nil, []int32{10, 20, 30, 40}},
	} {
		acc := tensor.Vector[int32](10, 20, 30, 40)
		elementwise.AccumulateRows(elementwise.Add, &acc, &c.x, c.rows, 2)
		if got := tensor.Values[int32](&acc); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	words, more := tensor.Vector("a", "b"), tensor.Vector("x", "y")
	elementwise.AccumulateRows(elementwise.Add, &words, &more, []int64{1, 1}, 1)
	if got := tensor.Values[string](&words); !slices.Equal(got, []string{"a", "bxy"}) {
		t.Errorf("strings: %q", got)
	}
}
