package intarg

import (
	"testing"

	"github.com/weft-ml/weft/tensor"
)

func TestPosition(t *testing.T) {
	for _, tt := range []struct {
		shape tensor.Shape
		i     int
		want  string
	}{
		{tensor.Shape{}, 0, ""},
		{tensor.Shape{4}, 3, "[3]"},
		{tensor.Shape{2, 3}, 4, "[1,1]"},
		{tensor.Shape{2, 1, 3}, 5, "[1,0,2]"},
	} {
		if got := Position(tt.shape, tt.i); got != tt.want {
			t.Errorf("Position(%v, %d) = %q, want %q", tt.shape, tt.i, got, tt.want)
		}
	}
}
