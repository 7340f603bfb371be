package quantize

import (
	"slices"

	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	attrs := []string{
		"window_strides: list(int) = []", "padding: string", "explicit_padding: list(int) = []", "lhs_dilation: list(int) = []",
		"rhs_dilation: list(int) = []", "batch_group_count: int = 1", "feature_group_count: int = 1", "dimension_numbers: string = ''",
	}
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "UniformQuantizedConvolution", Doc: "Performs quantized convolution of lhs and rhs, in any number of dimensions.",
			In: uniformInputs("Tin"), Out: []string{"output: Tout"},
			Attrs: append(append([]string{"Tin: {qint8}", "Tout: {qint32}"}, attrs...), uniformAttrs("lhs", "rhs", "output")...),
			Shape: convolutionShape,
		},
		Kernels: kernel.ForTypes("Tin", newUniformConv, tensor.QInt8),
	})
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "UniformQuantizedConvolutionHybrid",
			Doc:  "Performs hybrid convolution of float lhs and quantized rhs. Quantizes each image of lhs dynamically.",
			In:   []string{"lhs: Tlhs", "rhs: Trhs", "rhs_scales: float32", "rhs_zero_points: int32"}, Out: []string{"output: Tout"},
			Attrs: append(append([]string{"Tlhs: {float32}", "Trhs: {qint8}", "Tout: {float32}"}, attrs...), uniformAttrs("rhs")...),
			Shape: convolutionShape,
		},
		Kernels: kernel.ForTypes("Trhs", newUniformConvHybrid, tensor.QInt8),
	})
}

// checkChannelAxis checks the channel axis of a tensor. dimension is the name of that dimension in
// errors.
func checkChannelAxis(name, dimension string, axis int, want int64) error {
	if axis != -1 && int64(axis) != want {
		return status.InvalidArgumentf("%s_quantization_axis Attr must be -1 (per-tensor) or dimension_numbers.%s (per-channel).", name, dimension)
	}
	return nil
}

// fitted returns the convolution for the inputs of a kernel, after checking rhs, whose scales are
// input i.
func (c *convolution) fitted(ctx *kernel.Context, i, axis int) (*convolution, tensor.Shape, error) {
	lhs, rhs := ctx.Input(0).Shape(), ctx.Input(1).Shape()
	conv, err := c.fit(lhs, rhs)
	if err != nil {
		return nil, nil, err
	}
	if i == 4 {
		if err := checkOne(ctx); err != nil {
			return nil, nil, err
		}
	}
	if err := checkChannelAxis("rhs", "kernel_output_feature_dimension", axis, conv.kernel[0]); err != nil {
		return nil, nil, err
	}
	if _, err := channelsOf(rhs, ctx.Input(i).Shape(), ctx.Input(i+1).Shape(), axis); err != nil {
		return nil, nil, err
	}
	shape, err := conv.outShape(lhs, rhs)
	return conv, shape, err
}

func newUniformConv(c *kernel.Construction) (kernel.Kernel, error) {
	conv, err := newConvolution(c.Attrs)
	if err != nil {
		return nil, err
	}
	lo, hi := int32(c.Attrs.Int("output_quantization_min_val")), int32(c.Attrs.Int("output_quantization_max_val"))
	rhsAxis, outAxis := c.Attrs.Int("rhs_quantization_axis"), c.Attrs.Int("output_quantization_axis")
	if c.Attrs.Int("lhs_quantization_axis") != -1 {
		return nil, status.InvalidArgumentf("lhs_quantization_axis Attr must be -1 (per-tensor).")
	}
	return kernel.Func(func(ctx *kernel.Context) error {
		if err := checkPositive(ctx, map[int]string{2: "lhs", 4: "rhs", 6: "output"}); err != nil {
			return err
		}
		conv, shape, err := conv.fitted(ctx, 4, rhsAxis)
		if err != nil {
			return err
		}
		if err := checkChannelAxis("output", "output_feature_dimension", outAxis, conv.out[1]); err != nil {
			return err
		}
		if _, err := channelsOf(shape, ctx.Input(6).Shape(), ctx.Input(7).Shape(), outAxis); err != nil {
			return err
		}
		if ctx.Input(4).Rank() == 0 && ctx.Input(6).Rank() != 0 {
			return status.InvalidArgumentf("If rhs is per-tensor quantized, output must be also per-tensor quantized. "+
				"Given output scales/zero_points of rank %d", ctx.Input(6).Rank())
		}
		out, err := ctx.Allocate(0, shape)
		if err != nil {
			return err
		}
		lhs, rhs := ctx.Input(0), ctx.Input(1)
		result, err := newOutcome(ctx, int(rhs.Shape()[conv.kernel[0]]), lo, hi)
		if err != nil {
			return err
		}
		zero, zeros, z := tensor.Value[int32](ctx.Input(3)), tensor.Values[int32](ctx.Input(5)), tensor.Values[tensor.QInt32Elem](out)
		s := sweep{convolution: conv, lhs: lhs.Shape(), rhs: rhs.Shape(), out: shape}
		s.run(tensor.Values[tensor.QInt8Elem](lhs), tensor.Values[tensor.QInt8Elem](rhs), func(int) int32 { return zero }, zeros,
			func(to, _, feature int, sum int32) { z[to] = result.of(sum, feature) })
		return nil
	}), nil
}

func newUniformConvHybrid(c *kernel.Construction) (kernel.Kernel, error) {
	conv, err := newConvolution(c.Attrs)
	if err != nil {
		return nil, err
	}
	axis := c.Attrs.Int("rhs_quantization_axis")
	return kernel.Func(func(ctx *kernel.Context) error {
		if err := checkPositive(ctx, map[int]string{2: "rhs"}); err != nil {
			return err
		}
		conv, shape, err := conv.fitted(ctx, 2, axis)
		if err != nil {
			return err
		}
		out, err := ctx.Allocate(0, shape)
		if err != nil {
			return err
		}
		lhs, rhs := ctx.Input(0), ctx.Input(1)
		whole, scales, zeros := conv.dynamicBatch(tensor.Values[float32](lhs), lhs.Shape())
		kernelScales, kernelZeros, z := tensor.Values[float32](ctx.Input(2)), tensor.Values[int32](ctx.Input(3)), tensor.Values[float32](out)
		s := sweep{convolution: conv, lhs: lhs.Shape(), rhs: rhs.Shape(), out: shape}
		s.run(whole, tensor.Values[tensor.QInt8Elem](rhs), func(batch int) int32 { return zeros[batch] }, kernelZeros,
			func(to, batch, feature int, sum int32) {
				z[to] = float32(float32(sum)*scales[batch]) * at(kernelScales, feature)
			})
		return nil
	}), nil
}

// dynamicBatch quantizes each image of a batch by its own range.
func (c *convolution) dynamicBatch(x []float32, shape tensor.Shape) (q []tensor.QInt8Elem, scales []float32, zeros []int32) {
	axis := c.in[0]
	parts := channels{int(shape[:axis].NumElements()), int(shape[axis]), int(shape[axis+1:].NumElements())}
	if len(x) == 0 { // images have any size if there are no pixels
		parts.outer, parts.inner = 0, 0
	}
	q, scales, zeros = membudget.Make[tensor.QInt8Elem](len(x)), membudget.Make[float32](parts.n), membudget.Make[int32](parts.n)
	image, whole := membudget.Make[float32](parts.outer*parts.inner), membudget.Make[tensor.QInt8Elem](parts.outer*parts.inner)
	for i := range parts.n {
		for o := range parts.outer {
			copy(image[o*parts.inner:], x[(o*parts.n+i)*parts.inner:][:parts.inner])
		}
		scales[i], zeros[i] = dynamic(whole, image)
		for o := range parts.outer {
			copy(q[(o*parts.n+i)*parts.inner:][:parts.inner], whole[o*parts.inner:])
		}
	}
	return q, scales, zeros
}

// sweep is a convolution of inputs of known shapes.
type sweep struct {
	*convolution
	lhs, rhs, out tensor.Shape
}

// ordered returns the sizes and the strides of the dimensions of a shape, in the order of dims.
func ordered(shape tensor.Shape, dims []int64) (sizes, steps []int) {
	sizes, steps = membudget.Make[int](len(dims)), membudget.Make[int](len(dims))
	for i, d := range dims {
		sizes[i], steps[i] = int(shape[d]), int(shape[d+1:].NumElements())
	}
	return sizes, steps
}

// run calls store with every output: its index, its image in the input, its feature, and the sum of
// the products of values minus their zero points.
func (s *sweep) run(x, y []tensor.QInt8Elem, zero func(batch int) int32, zeros []int32, store func(to, batch, feature int, sum int32)) {
	_, in := ordered(s.lhs, s.in)
	windowSizes, window := ordered(s.rhs, s.kernel)
	outSizes, out := ordered(s.out, s.convolution.out)
	taps, places := product(windowSizes[2:]), product(outSizes[2:])
	// output features per feature group, and per batch group
	perGroup, perBatch := outSizes[1]/int(s.featureGroups), outSizes[1]/int(s.batchGroups)
	inputs := windowSizes[1]
	if s.out.NumElements() == 0 {
		return // there is any number of places
	}
	if inputs == 0 {
		taps = 0 // the window may have any size
	}
	parallel.For(places, max(1, 10_000/max(1, taps*inputs*outSizes[0]*outSizes[1])), func(lo, hi int) {
		from, weight := membudget.Make[int](taps), membudget.Make[int](taps)
		for tap := range taps {
			weight[tap] = offset(tap, windowSizes[2:], window[2:])
		}
		for place := lo; place < hi; place++ {
			for tap := range taps {
				from[tap] = s.source(place, tap, outSizes[2:], windowSizes[2:], in[2:])
			}
			to := offset(place, outSizes[2:], out[2:])
			for b := range outSizes[0] {
				for f := range outSizes[1] {
					batch := f/perBatch*outSizes[0] + b
					z, kz := zero(batch), at(zeros, f)
					// padding is the zero point, wrapped to int8
					outside := int32(tensor.QInt8Elem(z)) - z
					var sum int32
					for i := range inputs {
						start := batch*in[0] + (f/perGroup*inputs+i)*in[1]
						for tap, w := range weight {
							v := outside
							if from[tap] >= 0 {
								v = int32(x[start+from[tap]]) - z
							}
							sum += v * (int32(y[f*window[0]+i*window[1]+w]) - kz)
						}
					}
					store(to+b*out[0]+f*out[1], batch, f, sum)
				}
			}
		}
	})
}

func product(sizes []int) int {
	n := 1
	for _, s := range sizes {
		n *= s
	}
	return n
}

// offset returns the offset of element i of dimensions with the given sizes and strides.
func offset(i int, sizes, steps []int) int {
	at := 0
	for d, size := range slices.Backward(sizes) {
		at += i % size * steps[d]
		i /= size
	}
	return at
}

// source returns the offset of the input element that an output reads for a filter element, or -1
// if it reads padding or a dilation gap.
func (s *sweep) source(place, tap int, outSizes, windowSizes, steps []int) int {
	at := 0
	for d, size := range slices.Backward(outSizes) {
		p := int64(place%size)*s.strides[d] + int64(tap%windowSizes[d])*s.kernelDilations[d] - s.pads[2*d]
		place, tap = place/size, tap/windowSizes[d]
		if p < 0 || p%s.dilations[d] != 0 || p/s.dilations[d] >= s.lhs[s.in[2+d]] {
			return -1
		}
		at += int(p/s.dilations[d]) * steps[d]
	}
	return at
}
