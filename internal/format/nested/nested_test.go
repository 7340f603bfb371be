package nested

import (
	"math"
	"testing"

	"github.com/weft-ml/weft/tensor"
)

func TestLists(t *testing.T) {
	for _, tt := range []struct {
		shape tensor.Shape
		want  int64
	}{
		{tensor.Shape{}, 0}, {tensor.Shape{5}, 1}, {tensor.Shape{3, 5}, 4}, {tensor.Shape{2, 3, 4}, 9}, {tensor.Shape{0, 7}, 1},
		{tensor.Shape{1000000, 0}, 1000001}, {tensor.Shape{1 << 40, 0, 1 << 40}, math.MaxInt32 + 1},
	} {
		if got := Lists(tt.shape); got != tt.want {
			t.Errorf("%v: %d lists, want %d", tt.shape, got, tt.want)
		}
	}
}
