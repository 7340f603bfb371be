package fillempty_test

import (
	"slices"
	"testing"

	"github.com/weft-ml/weft/internal/opkit/fillempty"
	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

const op = "FillEmptyGradOfTest"

func init() { kernel.Register(fillempty.Grad(op, "FillEmptyOfTest")) }

func TestGrad(t *testing.T) {
	for _, c := range []struct {
		name         string
		reverse      []int64
		grad, values []float32
		defaults     float32
	}{
		{"values and defaults", []int64{0, 2, 3}, []float32{1, 10, 2, 4, 20}, []float32{1, 2, 4}, 30},
		{"no defaults", []int64{1, 0}, []float32{1, 2}, []float32{2, 1}, 0},
		{"no values", nil, []float32{1, 2}, nil, 3},
	} {
		out := kerneltest.Run(t, op, opdef.Attrs{"T": tensor.Float32}, tensor.Vector(c.reverse...), tensor.Vector(c.grad...))
		if got := tensor.Values[float32](&out[0]); !slices.Equal(got, c.values) {
			t.Errorf("%s: gradients %v of values, want %v", c.name, got, c.values)
		}
		if got := tensor.Value[float32](&out[1]); got != c.defaults {
			t.Errorf("%s: gradient %v of the default, want %v", c.name, got, c.defaults)
		}
	}
}

func TestBadIndex(t *testing.T) {
	for _, index := range []int64{-1, 2} {
		_, err := kerneltest.Try(op, opdef.Attrs{"T": tensor.Float32}, tensor.Vector(index), tensor.Vector[float32](1, 2))
		if status.CodeOf(err) != status.InvalidArgument {
			t.Errorf("index %d: %v", index, err)
		}
	}
}
