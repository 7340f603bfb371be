package elementwise

import (
	"slices"
	"testing"

	"github.com/weft-ml/weft/tensor"
)

// TestBroadcast compares every broadcast path with the positions from Offsets.
func TestBroadcast(t *testing.T) {
	for _, tt := range []struct{ x, y tensor.Shape }{
		{tensor.Shape{5}, tensor.Shape{1}},
		{tensor.Shape{}, tensor.Shape{3, 4}},
		{tensor.Shape{700, 3}, tensor.Shape{3}},
		{tensor.Shape{40}, tensor.Shape{33, 40}},
		{tensor.Shape{5, 7, 30}, tensor.Shape{5, 1, 30}},
		{tensor.Shape{5, 1, 2}, tensor.Shape{5, 900, 2}},
		{tensor.Shape{4, 1, 3, 5}, tensor.Shape{4, 6, 3, 5}},
		{tensor.Shape{3, 2000}, tensor.Shape{2000}},
		{tensor.Shape{100, 1}, tensor.Shape{1, 130}},
		{tensor.Shape{300, 40}, tensor.Shape{300, 1}},
		{tensor.Shape{2, 3, 1, 5}, tensor.Shape{2, 1, 4, 5}},
	} {
		shape, err := Broadcast(tt.x, tt.y)
		if err != nil {
			t.Fatal(err)
		}
		x, y := counting(tt.x, 1), counting(tt.y, 10_000)
		want, z := make([]int64, shape.NumElements()), make([]int64, shape.NumElements())
		xs, ys := Offsets(shape, tt.x), Offsets(shape, tt.y)
		for i := range want {
			want[i] = x[xs[i]] - y[ys[i]]
		}
		Loops[int64, int64]{Each: Difference[int64], Cost: 1}.broadcast(z, x, y, newLayout(shape, tt.x, tt.y))
		if !slices.Equal(z, want) {
			t.Errorf("the difference of %v and %v is wrong", tt.x, tt.y)
		}
	}
}

func counting(shape tensor.Shape, step int64) []int64 {
	x := make([]int64, shape.NumElements())
	for i := range x {
		x[i] = int64(i) * step
	}
	return x
}
