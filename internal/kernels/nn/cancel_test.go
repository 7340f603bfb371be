package nn

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// Windows that are as large as their input take the square of its size, and end with their step.
func TestLargeWindowsEndWithTheirStep(t *testing.T) {
	const size, look = 64, 20
	zeros := func(dtype tensor.DType, shape ...int64) tensor.Tensor {
		z, err := tensor.Zeros(dtype, shape)
		if err != nil {
			t.Fatal(err)
		}
		return z
	}
	attrs := func(dtype tensor.DType, more opdef.Attrs) opdef.Attrs {
		a := opdef.Attrs{"T": dtype, "strides": []int64{1, 1, 1, 1}, "padding": "SAME"}
		maps.Copy(a, more)
		return a
	}
	window := opdef.Attrs{"ksize": []int64{1, size, size, 1}}
	for _, dtype := range []tensor.DType{tensor.Float32, tensor.Int32} {
		x := zeros(dtype, 1, size, size, 1)
		kerneltest.WantCancelledAt(t, look, "MaxPool", attrs(dtype, window), x)
		kerneltest.WantCancelledAt(t, look, "MaxPoolGrad", attrs(dtype, window), x, x, x)
		kerneltest.WantCancelledAt(t, look, "MaxPoolGradGrad", attrs(dtype, window), x, x, x)
		kerneltest.WantCancelledAt(t, look, "Dilation2D", attrs(dtype, opdef.Attrs{"rates": []int64{1, 1, 1, 1}}), x, zeros(dtype, size, size, 1))
	}
	x := zeros(tensor.Float32, 1, size, size, 1)
	kerneltest.WantCancelledAt(t, look, "AvgPool", attrs(tensor.Float32, window), x)
	kerneltest.WantCancelledAt(t, look, "AvgPoolGrad", attrs(tensor.Float32, window), tensor.Vector[int32](1, size, size, 1), x)
	kerneltest.WantCancelledAt(t, look, "MaxPoolWithArgmax", attrs(tensor.Float32, window), x)
}

// The normalization of many channels with a large radius ends with its step.
func TestLargeRadiusEndsWithItsStep(t *testing.T) {
	const channels, look = 1 << 13, 5
	attrs := func(dtype tensor.DType, bias float32) opdef.Attrs {
		return opdef.Attrs{"T": dtype, "depth_radius": int64(channels), "bias": bias}
	}
	shape := tensor.Shape{1, 1, 1, channels}
	wide, err1 := tensor.FromSlice(shape, slices.Repeat([]float32{1}, channels))
	short, err2 := tensor.FromSlice(shape, slices.Repeat([]tensor.Float16Elem{tensor.Float16Of(1)}, channels))
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	for dtype, x := range map[tensor.DType]tensor.Tensor{tensor.Float32: wide, tensor.Float16: short} {
		kerneltest.WantCancelledAt(t, look, "LRN", attrs(dtype, 1), x)
		kerneltest.WantCancelledAt(t, look, "LRNGrad", attrs(dtype, 1), x, x, x)
		kerneltest.WantCancelledAt(t, look, "LRNGrad", attrs(dtype, -1), x, x, x)
	}
}
