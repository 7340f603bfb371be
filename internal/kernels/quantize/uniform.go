package quantize

import (
	"math"

	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Uniform quantization: integer q represents (q-zero)*scale. A tensor has one scale and zero point,
// or one of each for every channel along an axis.
// tensor or for each channel of it along an axis.
func init() {
	params := []string{"scales: float32", "zero_points: int32"}
	attrs := []string{"quantization_axis: int = -1", "quantization_min_val: int", "quantization_max_val: int"}
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "UniformQuantize", Doc: "Performs uniform quantization: converts x to integers round(x / scale) + zero_point.",
			In: append([]string{"input: Tin"}, params...), Out: []string{"output: Tout"},
			Attrs: append([]string{"Tin: {float32}", "Tout: {qint8, quint8, qint32}"}, attrs...), Shape: opdef.SameShape,
		},
		Kernels: kernel.ByType("Tout", kernel.Table{
			tensor.QInt8: newUniformQuantize[tensor.QInt8Elem], tensor.QUint8: newUniformQuantize[tensor.QUint8Elem],
			tensor.QInt32: newUniformQuantize[tensor.QInt32Elem],
		}),
	})
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "UniformDequantize", Doc: "Performs uniform dequantization: converts integers q to (q - zero_point) * scale.",
			In: append([]string{"input: Tin"}, params...), Out: []string{"output: Tout"},
			Attrs: append([]string{"Tin: {qint8, quint8, qint32}", "Tout: {float32}"}, attrs...), Shape: opdef.SameShape,
		},
		Kernels: kernel.ByType("Tin", kernel.Table{
			tensor.QInt8: newUniformDequantize[tensor.QInt8Elem], tensor.QUint8: newUniformDequantize[tensor.QUint8Elem],
			tensor.QInt32: newUniformDequantize[tensor.QInt32Elem],
		}),
	})
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "UniformRequantize", Doc: "Converts a uniformly quantized tensor to another scale and zero point.",
			In: []string{
				"input: Tin", "input_scales: float32", "input_zero_points: int32", "output_scales: float32", "output_zero_points: int32",
			},
			Out: []string{"output: Tout"},
			Attrs: []string{
				"Tin: {qint8, qint32}", "Tout: {qint8, qint32}",
				"input_quantization_axis: int = -1", "input_quantization_min_val: int", "input_quantization_max_val: int",
				"output_quantization_axis: int = -1", "output_quantization_min_val: int", "output_quantization_max_val: int",
			},
			Shape: opdef.SameShape,
		},
		Kernels: []kernel.Impl{
			{Types: narrowing(tensor.QInt8), New: newUniformRequantize[tensor.QInt8Elem]},
			{Types: narrowing(tensor.QInt32), New: newUniformRequantize[tensor.QInt32Elem]},
		},
	})
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "UniformQuantizedClipByValue", Doc: "Clips a uniformly quantized tensor to the range [min, max].",
			In: append([]string{"operand: T", "min: T", "max: T"}, params...), Out: []string{"output: T"},
			Attrs: append([]string{"T: {qint32}"}, attrs...), Shape: opdef.SameShape,
		},
		Kernels: kernel.ForTypes("T", newUniformClip, tensor.QInt32),
	})
}

func narrowing(from tensor.DType) []kernel.Constraint {
	return []kernel.Constraint{kernel.OfType("Tin", from), kernel.OfType("Tout", tensor.QInt8)}
}

// channels describes the parts of a tensor that have their own scale and zero point: the slices
// along an axis, or the whole tensor.
type channels struct{ outer, n, inner int }

// channelsOf checks that scales and zero points fit the data.
func channelsOf(data, scales, zeros tensor.Shape, axis int) (channels, error) {
	switch {
	case !scales.Equal(zeros):
		return channels{}, status.InvalidArgumentf(
			"scales and zero_points shape must be same, but given scales shape %v and zero_points shape %v", scales, zeros)
	case axis < -1 || axis >= len(data):
		return channels{}, status.InvalidArgumentf("quantization_axis must be -1 or in range [0, input.rank), but given %d", axis)
	case axis == -1 && len(scales) != 0:
		return channels{}, status.InvalidArgumentf("If quantization_axis is -1, scales and zero_points must be scalar tensors, but given "+
			"scales shape %v and zero_points shape %v", scales, zeros)
	case axis == -1:
		return channels{1, 1, int(data.NumElements())}, nil
	case len(scales) != 1 || scales[0] != data[axis]:
		return channels{}, status.InvalidArgumentf("If quantization_axis is not -1, scales and zero_points must be a tensor of rank 1 and "+
			"the size must be equal to the input.dim_size(quantization_axis), but given quantization_axis %d, scales shape %v and "+
			"zero_points shape %v", axis, scales, zeros)
	}
	return channels{int(data[:axis].NumElements()), int(data[axis]), int(data[axis+1:].NumElements())}, nil
}

// each calls f with every run of elements of one channel, on several cores.
func (c channels) each(f func(channel, lo, hi int)) {
	if c.inner == 0 {
		return // there is any number of rows
	}
	parallel.For(c.outer*c.n, max(1, 10_000/max(c.inner, 1)), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			f(i%c.n, i*c.inner, (i+1)*c.inner)
		}
	})
}

// at returns the scale or zero point of a channel. A single value applies to all channels.
func at[T any](values []T, channel int) T {
	if len(values) == 1 {
		return values[0]
	}
	return values[channel]
}

func allPositive(scales *tensor.Tensor) bool {
	for _, v := range tensor.Values[float32](scales) {
		if !(v > 0) {
			return false
		}
	}
	return true
}

// clampInt limits v to the range from lo to hi. If lo > hi, it returns lo.
func clampInt(v, lo, hi int32) int32 { return max(min(v, hi), lo) }

// toInt32 converts like the processor's instruction: values that int32 cannot represent become the
// smallest int32.
func toInt32(v float32) int32 {
	if v >= -(1<<31) && v < 1<<31 {
		return int32(v)
	}
	return math.MinInt32
}

// affine returns the quantized value of a number.
func affine(v, inverse float32, zero, lo, hi int32) int32 {
	return clampInt(toInt32(float32(math.Floor(float64(float32(v*inverse)+0.5))))+zero, lo, hi)
}

func newUniformQuantize[T tensor.QInt8Elem | tensor.QUint8Elem | tensor.QInt32Elem](c *kernel.Construction) (kernel.Kernel, error) {
	axis := c.Attrs.Int("quantization_axis")
	lo, hi := int32(c.Attrs.Int("quantization_min_val")), int32(c.Attrs.Int("quantization_max_val"))
	if axis < -1 {
		return nil, status.InvalidArgumentf("quantization_axis must be >= -1, given: %d", axis)
	}
	return kernel.Func(func(ctx *kernel.Context) error {
		parts, err := channelsOf(ctx.Input(0).Shape(), ctx.Input(1).Shape(), ctx.Input(2).Shape(), axis)
		if err != nil {
			return err
		}
		out, err := ctx.AllocateLike(0, ctx.Input(0))
		if err != nil {
			return err
		}
		x, z := tensor.Values[float32](ctx.Input(0)), tensor.Values[T](out)
		scales, zeros := tensor.Values[float32](ctx.Input(1)), tensor.Values[int32](ctx.Input(2))
		parts.each(func(channel, first, end int) {
			inverse, zero := 1/scales[channel], zeros[channel]
			for i, v := range x[first:end] {
				z[first+i] = T(affine(v, inverse, zero, lo, hi))
			}
		})
		return nil
	}), nil
}

func newUniformDequantize[T tensor.QInt8Elem | tensor.QUint8Elem | tensor.QInt32Elem](c *kernel.Construction) (kernel.Kernel, error) {
	axis := c.Attrs.Int("quantization_axis")
	return kernel.Func(func(ctx *kernel.Context) error {
		parts, err := channelsOf(ctx.Input(0).Shape(), ctx.Input(1).Shape(), ctx.Input(2).Shape(), axis)
		if err != nil {
			return err
		}
		if !allPositive(ctx.Input(1)) {
			return status.InvalidArgumentf("rhs scales elements must be all positive.")
		}
		out, err := ctx.AllocateLike(0, ctx.Input(0))
		if err != nil {
			return err
		}
		x, z := tensor.Values[T](ctx.Input(0)), tensor.Values[float32](out)
		scales, zeros := tensor.Values[float32](ctx.Input(1)), tensor.Values[int32](ctx.Input(2))
		parts.each(func(channel, first, end int) {
			scale, zero := scales[channel], zeros[channel]
			for i, v := range x[first:end] {
				z[first+i] = float32(int32(v)-zero) * scale
			}
		})
		return nil
	}), nil
}

// multiplier is a positive factor in fixed point: an integer and a power of two.
type multiplier struct {
	factor int64
	shift  int // from -31 to 30
}

func newMultiplier(m float64) (multiplier, error) {
	if math.IsInf(m, 0) || !(m > 0) {
		return multiplier{}, status.InvalidArgumentf("double_multiplier must be a poisitive finite number. Given %s",
			tensor.FormatFloat(m, 32))
	}
	fraction, shift := math.Frexp(m)
	factor := int64(math.Round(fraction * (1 << 31)))
	if factor == 1<<31 {
		factor, shift = factor/2, shift+1
	}
	switch {
	case shift < -31:
		return multiplier{}, nil
	case shift > 30:
		return multiplier{1<<31 - 1, 30}, nil
	}
	return multiplier{factor, shift}, nil
}

// times returns x times the factor, rounded.
func (m multiplier) times(x int32) int32 {
	shift := 31 - m.shift
	v := (int64(x)*m.factor + 1<<(shift-1)) >> shift
	return int32(min(max(v, math.MinInt32), math.MaxInt32))
}

// newMultipliers returns, for each of n channels, the factor that converts from one scale to
// another. A single scale in to applies to all channels.
func newMultipliers(n int, from func(channel int) float64, to []float32) ([]multiplier, error) {
	out := membudget.Make[multiplier](n)
	for i := range out {
		var err error
		if out[i], err = newMultiplier(from(i) / float64(at(to, i))); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func newUniformRequantize[T tensor.QInt8Elem | tensor.QInt32Elem](c *kernel.Construction) (kernel.Kernel, error) {
	from, to := c.Attrs.Int("input_quantization_axis"), c.Attrs.Int("output_quantization_axis")
	lo, hi := int32(c.Attrs.Int("output_quantization_min_val")), int32(c.Attrs.Int("output_quantization_max_val"))
	switch {
	case from < -1:
		return nil, status.InvalidArgumentf("input_quantization_axis must be >= -1, given: %d", from)
	case to < -1:
		return nil, status.InvalidArgumentf("output_quantization_axis must be >= -1, given: %d", to)
	case from >= 0 && to >= 0 && from != to:
		return nil, status.InvalidArgumentf("If input and output is both per-axis quantized, the quantization axis must be same.")
	}
	return kernel.Func(func(ctx *kernel.Context) error {
		in := ctx.Input(0)
		parts, err := channelsOf(in.Shape(), ctx.Input(1).Shape(), ctx.Input(2).Shape(), from)
		if err != nil {
			return err
		}
		results, err := channelsOf(in.Shape(), ctx.Input(3).Shape(), ctx.Input(4).Shape(), to)
		if err != nil {
			return err
		}
		if to >= 0 {
			parts = results
		}
		if !allPositive(ctx.Input(1)) || !allPositive(ctx.Input(3)) {
			return status.InvalidArgumentf("input/output scales elements must be all positive.")
		}
		out, err := ctx.AllocateLike(0, in)
		if err != nil {
			return err
		}
		scales, zeros, newZeros := tensor.Values[float32](ctx.Input(1)), tensor.Values[int32](ctx.Input(2)), tensor.Values[int32](ctx.Input(4))
		multipliers, err := newMultipliers(parts.n, func(i int) float64 { return float64(at(scales, i)) }, tensor.Values[float32](ctx.Input(3)))
		if err != nil {
			return err
		}
		x, z := tensor.Values[T](in), tensor.Values[tensor.QInt8Elem](out)
		parts.each(func(channel, first, end int) {
			m, zero, newZero := multipliers[channel], at(zeros, channel), at(newZeros, channel)
			for i, v := range x[first:end] {
				z[first+i] = tensor.QInt8Elem(clampInt(m.times(int32(v)-zero)+newZero, lo, hi))
			}
		})
		return nil
	}), nil
}

func newUniformClip(c *kernel.Construction) (kernel.Kernel, error) {
	axis := c.Attrs.Int("quantization_axis")
	return kernel.Func(func(ctx *kernel.Context) error {
		in, scales := ctx.Input(0), ctx.Input(3).Shape()
		parts, err := channelsOf(in.Shape(), scales, ctx.Input(4).Shape(), axis)
		if err != nil {
			return err
		}
		for i, name := range []string{"min", "max"} {
			if limit := ctx.Input(1 + i).Shape(); !limit.Equal(scales) {
				return status.InvalidArgumentf("Input %s shape must be same as scales/zero_points. Given %s of shape %v and "+
					"scales/zero_points of shape %v", name, name, limit, scales)
			}
		}
		out, err := ctx.AllocateLike(0, in)
		if err != nil {
			return err
		}
		x, z := tensor.Values[tensor.QInt32Elem](in), tensor.Values[tensor.QInt32Elem](out)
		least, most := tensor.Values[tensor.QInt32Elem](ctx.Input(1)), tensor.Values[tensor.QInt32Elem](ctx.Input(2))
		parts.each(func(channel, first, end int) {
			for i, v := range x[first:end] {
				z[first+i] = min(max(v, least[channel]), most[channel])
			}
		})
		return nil
	}), nil
}
