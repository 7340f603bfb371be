package intarg_test

import (
	"slices"
	"testing"

	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// TestEveryIntegerType reads the elements of each type and sets them.
func TestEveryIntegerType(t *testing.T) {
	for _, x := range []tensor.Tensor{
		tensor.Vector[int8](1, 2), tensor.Vector[int16](1, 2), tensor.Vector[int32](1, 2), tensor.Vector[int64](1, 2),
		tensor.Vector[uint8](1, 2), tensor.Vector[uint16](1, 2), tensor.Vector[uint32](1, 2), tensor.Vector[uint64](1, 2),
	} {
		if got := intarg.Values(&x); !slices.Equal(got, []int64{1, 2}) {
			t.Errorf("%v: values %v", x.DType(), got)
		}
		intarg.Set(&x, []int64{7, 8})
		var last [1]int64
		if !intarg.Read(last[:], &x, 1) || last[0] != 8 || intarg.Scalar(&x) != 7 {
			t.Errorf("%v: after Set, scalar %d and last %d", x.DType(), intarg.Scalar(&x), last[0])
		}
	}
	x := tensor.Vector[float32](1)
	if intarg.Values(&x) != nil || intarg.Read(make([]int64, 1), &x, 0) {
		t.Error("a float tensor has integer values")
	}
}

func TestAxis(t *testing.T) {
	for _, c := range []struct {
		axis int64
		rank int
		want int
		ok   bool
	}{{0, 3, 0, true}, {2, 3, 2, true}, {-1, 3, 2, true}, {-3, 3, 0, true}, {3, 3, 3, false}, {-4, 3, -1, false}, {0, 0, 0, false}} {
		if got, ok := intarg.Axis(c.axis, c.rank); got != c.want || ok != c.ok {
			t.Errorf("axis %d of %d: %d, %v", c.axis, c.rank, got, ok)
		}
	}
}

func TestShape(t *testing.T) {
	if got, err := intarg.Shape([]int64{2, 0, 3}); err != nil || !got.Equal(tensor.Shape{2, 0, 3}) {
		t.Errorf("shape %v, error %v", got, err)
	}
	for _, dims := range [][]int64{{2, -1}, {1 << 40, 1 << 40}} {
		if _, err := intarg.Shape(dims); status.CodeOf(err) != status.InvalidArgument {
			t.Errorf("dimensions %v: %v", dims, err)
		}
	}
}

func TestPosition(t *testing.T) {
	for _, c := range []struct {
		shape tensor.Shape
		i     int
		want  string
	}{
		{tensor.Shape{}, 0, ""}, {tensor.Shape{4}, 3, "[3]"}, {tensor.Shape{2, 3}, 4, "[1,1]"}, {tensor.Shape{2, 1, 3}, 5, "[1,0,2]"},
	} {
		if got := intarg.Position(c.shape, c.i); got != c.want {
			t.Errorf("position %d in %v is %q, want %q", c.i, c.shape, got, c.want)
		}
	}
}
