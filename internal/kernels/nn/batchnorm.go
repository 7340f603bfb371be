package nn

import (
	"math"

	"github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/internal/numeric/simd"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

const (
	epsilonAttr     = "epsilon: float = 9.999999747378752e-05"
	averageAttr     = "exponential_avg_factor: float = 1.0"
	trainingAttr    = "is_training: bool = true"
	dataFormatsBoth = "data_format: {'NHWC', 'NCHW', 'NDHWC', 'NCDHW'} = 'NHWC'"
	shortAndFloat   = "T: {float16, bfloat16, float32}"
)

func init() {
	const doc = "Applies batch normalization (Ioffe and Szegedy, 2015): normalizes each channel to mean 0 and variance 1, then scales and shifts it. Uses the mean and variance of the batch if is_training is true, and the inputs mean and variance otherwise."
	types := []tensor.DType{tensor.Float16, tensor.BFloat16, tensor.Float32}
	for _, v := range []struct {
		name, stat string // operation, and type of statistics
		attrs      []string
		reserved   int
		format     string
	}{
		{"FusedBatchNorm", "T", []string{"T: {float32}"}, 2, dataFormat2D},
		{"FusedBatchNormV2", "U", []string{shortAndFloat, "U: {float32}"}, 2, dataFormat2D},
		{"FusedBatchNormV3", "U", []string{shortAndFloat, "U: {bfloat16, float32}"}, 3, dataFormatsBoth},
	} {
		in, out := []string{"x: T"}, []string{"y: T"}
		for _, name := range []string{"scale", "offset", "mean", "variance"} {
			in = append(in, name+": "+v.stat)
		}
		for _, name := range []string{"batch_mean", "batch_variance", "reserve_space_1", "reserve_space_2", "reserve_space_3"}[:2+v.reserved] {
			out = append(out, name+": "+v.stat)
		}
		impl := kernel.Impl{Types: []kernel.Constraint{kernel.OfType("T", types...)}, New: newBatchNorm}
		if v.stat == "U" {
			impl.Types = append(impl.Types, kernel.OfType("U", tensor.Float32))
		}
		kernel.Register(kernel.Op{
			Def: opdef.Def{
				Name: v.name, Doc: doc, In: in, Out: out,
				Attrs: append(v.attrs, epsilonAttr, averageAttr, v.format, trainingAttr), Shape: batchNormShape,
			},
			Kernels: []kernel.Impl{impl},
		})
	}
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "_FusedBatchNormEx", Doc: doc + " Optionally adds a side input to the result and applies an activation function.",
			In: []string{"x: T", "scale: U", "offset: U", "mean: U", "variance: U", "side_input: num_side_inputs * T"},
			Out: []string{
				"y: T", "batch_mean: U", "batch_variance: U", "reserve_space_1: U", "reserve_space_2: U", "reserve_space_3: U",
			},
			Attrs: []string{
				"T: {float16, float32, bfloat16}", "U: {float32}", epsilonAttr, averageAttr, "num_side_inputs: int >= 0 = 0",
				"activation_mode: string = 'Identity'", dataFormat2D, trainingAttr,
			},
			Shape: batchNormExShape,
		},
		Kernels: kernel.ForTypes("T", newBatchNorm, types...),
	})
}

// batchAxes returns the layout that the attribute data_format describes, of 4 or 5 dimensions.
func batchAxes(attrs opdef.Attrs) axes {
	if f := attrs.String("data_format"); f == "NDHWC" || f == "NCDHW" {
		return axesOf(attrs, 3)
	}
	return axesOf(attrs, 2)
}

func batchNormShape(c *opdef.ShapeContext) error {
	a := batchAxes(c.Attrs)
	x, err := opdef.WithRank(c.In[0], a.rank())
	if err != nil {
		return err
	}
	vectors := 5
	if c.Attrs.Bool("is_training") && c.Attrs.Float("exponential_avg_factor") == 1 {
		vectors = 3
	}
	channels, err := mergeVectors(c, x.Dim(a.channel()), 1, vectors)
	if err != nil {
		return err
	}
	c.SetAll(tensor.MakePartial(channels))
	c.Out[0] = withDim(x, a.channel(), channels)
	if len(c.Out) > 5 {
		c.Out[5] = tensor.PartialShape{}
	}
	return nil
}

func batchNormExShape(c *opdef.ShapeContext) error {
	if err := batchNormShape(c); err != nil {
		return err
	}
	a := batchAxes(c.Attrs)
	if d := c.In[0].Dim(a.channel()); d > 0 && d%4 != 0 {
		return status.InvalidArgumentf("_FusedBatchNormEx channel dimension must be divisible by 4.")
	}
	return nil
}

// mergeVectors checks that inputs lo to hi are vectors and merges their lengths with the number of
// channels.
func mergeVectors(c *opdef.ShapeContext, channels int64, lo, hi int) (int64, error) {
	for i := lo; i < hi; i++ {
		v, err := opdef.WithRank(c.In[i], 1)
		if err != nil {
			return 0, err
		}
		if channels, err = opdef.MergeDims(channels, v.Dim(0)); err != nil {
			return 0, err
		}
	}
	return channels, nil
}

// withDim returns a copy of s in which dimension i is dim.
func withDim(s tensor.PartialShape, i int, dim int64) tensor.PartialShape {
	dims := s.Dims()
	dims[i] = dim
	return tensor.MakePartial(dims...)
}

// batchNorm is the kernel of FusedBatchNorm and its variants.
type batchNorm struct {
	first, training bool
	epsilon, factor float32
	side, relu      bool
}

func newBatchNorm(c *kernel.Construction) (kernel.Kernel, error) {
	a := c.Attrs
	b := &batchNorm{
		first: channelsFirst(a), training: a.Bool("is_training"), epsilon: a.Float("epsilon"),
		factor: a.Float("exponential_avg_factor"), side: a.Int("num_side_inputs") > 0,
	}
	switch mode := a.String("activation_mode"); mode {
	case "", "Identity":
	case "Relu":
		b.relu = true
	default:
		return nil, status.InvalidArgumentf("Unsupported activation mode: %s", mode)
	}
	if a.Int("num_side_inputs") > 1 {
		return nil, status.InvalidArgumentf("FusedBatchNorm accepts at most one side input.")
	}
	return b, nil
}

// channelAxis returns the index of the channel dimension of a shape.
func channelAxis(s tensor.Shape, first bool) int {
	if first {
		return 1
	}
	return len(s) - 1
}

func (b *batchNorm) check(ctx *kernel.Context) error {
	x := ctx.Input(0).Shape()
	if len(x) != 4 && len(x) != 5 {
		return status.InvalidArgumentf("input must be 4 or 5-dimensional%v", x)
	}
	for i, name := range []string{"scale", "offset", "estimated_mean", "estimated_variance"} {
		if s := ctx.Input(i + 1).Shape(); len(s) != 1 {
			return status.InvalidArgumentf("%s must be 1-dimensional%v", name, s)
		}
	}
	channels, given := x[channelAxis(x, b.first)], b.needsGiven()
	for i, name := range []string{"scale", "offset", "mean", "variance"} {
		n := ctx.Input(i + 1).Shape()[0]
		if n == channels || i > 1 && !given {
			continue
		}
		if i > 1 {
			when := "When is_training=false, "
			if b.training {
				when = "When exponential_avg_factor != 1, "
			}
			name = when + name
		}
		return status.InvalidArgumentf("%s must have the same number of elements as the channels of x, got %d and %d", name, n, channels)
	}
	if b.side && !ctx.Input(5).Shape().Equal(x) {
		return status.InvalidArgumentf("side_input shape must be equal to input shape: %v != %v", ctx.Input(5).Shape(), x)
	}
	return nil
}

// needsGiven reports whether the inputs mean and variance are used.
func (b *batchNorm) needsGiven() bool { return !b.training || b.factor != 1 }

func (b *batchNorm) Compute(ctx *kernel.Context) error {
	if err := b.check(ctx); err != nil {
		return err
	}
	in := ctx.Input(0)
	l := layoutOf(in.Shape(), b.first)
	out, err := ctx.AllocateLike(0, in)
	if err != nil {
		return err
	}
	// mean and variance for the running averages, then those of the batch for the gradient
	var stats [4][]float32
	var tensors [4]*tensor.Tensor
	for i := range stats {
		t, err := ctx.AllocateLike(i+1, ctx.Input(1))
		if err != nil {
			return err
		}
		if tensors[i] = t; !t.OnDevice() {
			stats[i] = tensor.Values[float32](t)
		}
	}
	if ctx.NumOutputs() > 5 {
		if _, err := ctx.AllocateZeros(5, tensor.Shape{}); err != nil {
			return err
		}
	}
	if d := device.Of(out); d != nil && in.NumElements() > 0 {
		return b.onDevice(ctx, d, out, tensors)
	}
	if in.OnDevice() {
		return b.emptyOnDevice(tensors)
	}
	if in.NumElements() == 0 {
		for i := range stats[0] {
			stats[0][i], stats[1][i] = float32(math.NaN()), float32(math.NaN())
		}
		clear(stats[2])
		clear(stats[3])
		return nil
	}
	x := wide(in)
	z, done := wideOutput(out)
	mean, variance := b.statistics(ctx, x, l, stats)
	b.normalize(ctx, z, x, l, mean, variance)
	done()
	return nil
}

// statistics returns the mean and variance to normalize with and fills the statistics outputs.
func (b *batchNorm) statistics(ctx *kernel.Context, x []float32, l channelLayout, out [4][]float32) (mean, variance []float32) {
	given, givenVar := tensor.Values[float32](ctx.Input(3)), tensor.Values[float32](ctx.Input(4))
	if !b.training {
		for i := range 2 {
			copy(out[2*i], given)
			copy(out[2*i+1], givenVar)
		}
		return given, givenVar
	}
	mean, variance = out[2], out[3]
	n := float64(l.outer * l.inner)
	means, squares := momentsOf(x, l)
	for c, v := range means {
		mean[c] = float32(v)
	}
	unbiased := float32(n / max(n-1, 1)) // Bessel's correction of the sample variance
	for c, v := range squares {
		variance[c] = float32(v / n)
		out[0][c], out[1][c] = mean[c], variance[c]*unbiased
		if b.factor != 1 {
			out[0][c] = (1-b.factor)*given[c] + b.factor*mean[c]
			out[1][c] = (1-b.factor)*givenVar[c] + b.factor*unbiased*variance[c]
		}
	}
	return mean, variance
}

func (b *batchNorm) normalize(ctx *kernel.Context, z, x []float32, l channelLayout, mean, variance []float32) {
	scale, offset := tensor.Values[float32](ctx.Input(1)), perChannel[float32](tensor.Values[float32](ctx.Input(2)))
	factor := values(l.channels, func(c int) float32 { return scale[c] * inverseRoot(variance[c]+b.epsilon) })
	shift := values(l.channels, func(c int) float32 { return -mean[c] })
	var side []float32
	if b.side {
		side = wide(ctx.Input(5))
	}
	l.pieces(func(lo, hi, c int) {
		z := z[lo:hi]
		if c < 0 {
			simd.Normalize(z, x[lo:hi], mean, factor, offset)
		} else {
			shift.add(z, x[lo:hi], c)
			factor.mul(z, z, c)
			offset.add(z, z, c)
		}
		if b.side {
			simd.Add(z, z, side[lo:hi])
		}
		if b.relu {
			simd.Relu(z, z)
		}
	})
}

func inverseRoot[T simd.Float](v T) T { return T(1 / math.Sqrt(float64(v))) }
