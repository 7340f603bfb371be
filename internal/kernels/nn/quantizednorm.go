package nn

import (
	"math"

	"github.com/weft-ml/weft/internal/opkit/quantize"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "QuantizedInstanceNorm", Doc: "Computes instance normalization of a quantized tensor: normalizes each channel of each image to mean 0 and variance 1.",
			In: []string{"x: T", "x_min: float32", "x_max: float32"}, Out: []string{"y: T", "y_min: float32", "y_max: float32"},
			Attrs: []string{"T: " + quantize.Types, "output_range_given: bool = false", "given_y_min: float = 0", "given_y_max: float = 0",
				"variance_epsilon: float = 0.000009999999747378752", "min_separation: float = 0.001000000047497451"},
			Shape: quantize.Shape(func(c *opdef.ShapeContext) error {
				c.Out[0] = c.In[0]
				return shapefn.CheckRanks(c, 0, 4)
			}, 1),
		},
		Kernels: kernel.ForTypes("T", newQuantizedInstanceNorm, tensor.QUint8),
	})
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "QuantizedBatchNormWithGlobalNormalization", Doc: "Computes batch normalization of a quantized tensor with the given mean and variance.",
			In: []string{"t: Tinput", "t_min: float32", "t_max: float32", "m: Tinput", "m_min: float32", "m_max: float32", "v: Tinput", "v_min: float32",
				"v_max: float32", "beta: Tinput", "beta_min: float32", "beta_max: float32", "gamma: Tinput", "gamma_min: float32", "gamma_max: float32"},
			Out:   []string{"result: out_type", "result_min: float32", "result_max: float32"},
			Attrs: []string{"Tinput: " + quantize.Types, "out_type: " + quantize.Types, "variance_epsilon: float", "scale_after_normalization: bool"},
			Shape: quantizedBatchNormShape,
		},
		Kernels: []kernel.Impl{{Types: []kernel.Constraint{kernel.OfType("Tinput", tensor.QUint8), kernel.OfType("out_type", tensor.QInt32)}, New: newQuantizedBatchNorm}},
	})
}

func quantizedBatchNormShape(c *opdef.ShapeContext) error {
	in, err := opdef.WithRank(c.In[0], 4)
	if err != nil {
		return err
	}
	last := in.Dim(3)
	for i := 1; i < 5; i++ {
		v, err := opdef.WithRank(c.In[3*i], 1)
		if err == nil {
			last, err = opdef.MergeDims(last, v.Dim(0))
		}
		if err != nil {
			return err
		}
	}
	c.SetAll(shapefn.Of())
	c.Out[0] = shapefn.Replace(in, 3, last)
	return nil
}

func newQuantizedInstanceNorm(c *kernel.Construction) (kernel.Kernel, error) {
	given, want := c.Attrs.Bool("output_range_given"), quantize.Range{Min: c.Attrs.Float("given_y_min"), Max: c.Attrs.Float("given_y_max")}
	epsilon, separation := c.Attrs.Float("variance_epsilon"), c.Attrs.Float("min_separation")
	if given && !(want.Min < want.Max) {
		return nil, status.InvalidArgumentf("given_y_min must be less than given_y_max : %s >= %s", floatText(want.Min), floatText(want.Max))
	}
	return kernel.Func(func(ctx *kernel.Context) error {
		r, err := quantize.InputRange(ctx, 1, "`x_min`", "`x_max`")
		if err != nil {
			return err
		}
		in := ctx.Input(0)
		switch {
		case !(r.Min < r.Max):
			return status.InvalidArgumentf("input_min must be less than input_max : %s >= %s", floatText(r.Min), floatText(r.Max))
		case in.Rank() != 4:
			return status.InvalidArgumentf("x must be rank 4 but is rank %d", in.Rank())
		}
		out, err := ctx.Allocate(0, in.Shape())
		if err != nil {
			return err
		}
		normed := normalizeInstances(in, (r.Max-r.Min)/255, epsilon)
		to := want
		if !given {
			to = quantize.Range{Min: float32(math.Inf(1)), Max: float32(math.Inf(-1))}
			for _, v := range normed {
				to.Min, to.Max = min(to.Min, v), max(to.Max, v)
			}
		}
		if to.Max-to.Min < separation {
			to.Max = to.Min + separation
		}
		z, encode := tensor.Values[tensor.QUint8Elem](out), quantize.Uint8.Encoder(to)
		for i, v := range normed {
			z[i] = tensor.QUint8Elem(encode(v))
		}
		quantize.SetRange(ctx, 1, to)
		return nil
	}), nil
}

func floatText(v float32) string { return tensor.FormatFloat(float64(v), 32) }

func normalizeInstances(in *tensor.Tensor, scale, epsilon float32) []float32 {
	q, pixels, channels := tensor.Values[tensor.QUint8Elem](in), in.Dim(1)*in.Dim(2), in.Dim(3)
	out := membudget.Make[float32](len(q))
	for n := range in.Dim(0) {
		for c := range channels {
			at := func(i int) int { return (n*pixels+i)*channels + c }
			sum := 0
			for i := range pixels {
				sum += int(q[at(i)])
			}
			mean := float32(float64(sum) / float64(pixels))
			var squares float64
			for i := range pixels {
				d := scale * (float32(q[at(i)]) - mean)
				squares += float64(d * d)
			}
			inverse := float32(1 / math.Sqrt(float64(float32(squares/float64(pixels))+epsilon)))
			for i := range pixels {
				out[at(i)] = scale * (float32(q[at(i)]) - mean) * inverse
			}
		}
	}
	return out
}

func newQuantizedBatchNorm(c *kernel.Construction) (kernel.Kernel, error) {
	epsilon, scales := c.Attrs.Float("variance_epsilon"), c.Attrs.Bool("scale_after_normalization")
	return kernel.Func(func(ctx *kernel.Context) error {
		ranges, err := batchNormRanges(ctx)
		if err != nil {
			return err
		}
		in := ctx.Input(0)
		out, err := ctx.Allocate(0, in.Shape())
		if err != nil {
			return err
		}
		to := quantize.Range{Min: -(1 << 20), Max: 1 << 20}
		encode := func(v float32) int32 { return int32(quantize.Int32.Of(v, to)) }
		depth := ctx.Input(3).NumElements()
		factor, offset := membudget.Make[int32](depth), membudget.Make[int32](depth)
		for c := range depth {
			value := func(i int) float32 {
				return quantize.Uint8.Value(int64(tensor.Values[tensor.QUint8Elem](ctx.Input(3 * i))[c]), ranges[i])
			}
			f := 1 / float32(math.Sqrt(float64(value(2)+epsilon)))
			if scales {
				f *= value(4)
			}
			factor[c], offset[c] = encode(f), encode(float32(-value(1)*f)+value(3))
		}
		var wide [256]int32
		for q := range wide {
			wide[q] = encode(quantize.Uint8.Value(int64(q), ranges[0]))
		}
		z, one := tensor.Values[tensor.QInt32Elem](out), encode(1)
		for i, q := range tensor.Values[tensor.QUint8Elem](in) {
			z[i] = tensor.QInt32Elem(wide[q]*factor[i%depth]/one + offset[i%depth])
		}
		quantize.SetRange(ctx, 1, to)
		return nil
	}), nil
}

// batchNormRanges checks the inputs and returns the ranges of t, m, v, beta and gamma.
func batchNormRanges(ctx *kernel.Context) (ranges [5]quantize.Range, err error) {
	for i, name := range []string{"input", "mean", "var", "beta", "gamma"} {
		for k, limit := range []string{"_min", "_max"} {
			t := ctx.Input(3*i + 1 + k)
			if t.NumElements() != 1 {
				return ranges, status.InvalidArgumentf("%s%s must have 1 element", name, limit)
			}
			if v := tensor.Values[float32](t)[0]; k == 0 {
				ranges[i].Min = v
			} else {
				ranges[i].Max = v
			}
		}
	}
	in, mean := ctx.Input(0), ctx.Input(3)
	if in.Rank() != 4 {
		return ranges, status.InvalidArgumentf("input must be 4-dimensional%v", in.Shape())
	}
	for i, name := range []string{"mean", "var", "beta", "gamma"} {
		if t := ctx.Input(3 + 3*i); t.Rank() != 1 {
			return ranges, status.InvalidArgumentf("%s must be 1-dimensional%v", name, t.Shape())
		}
	}
	if mean.NumElements() <= 1 {
		return ranges, status.InvalidArgumentf("Must have at least a mean value%v", ctx.Input(12).Shape())
	}
	if mean.Dim(0) != in.Dim(3) {
		return ranges, status.InvalidArgumentf("Must provide as many means as the last dimension of the input tensor: %v vs. %v", mean.Shape(), in.Shape())
	}
	for i, name := range []string{"variance", "beta", "gamma"} {
		if t := ctx.Input(6 + 3*i); t.Dim(0) != mean.Dim(0) {
			return ranges, status.InvalidArgumentf("Mean and %s tensors must have the same shape: %v vs. %v", name, mean.Shape(), t.Shape())
		}
	}
	return ranges, nil
}
