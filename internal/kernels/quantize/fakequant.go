package quantize

import (
	"math"

	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	const doc = "Fake-quantizes inputs: rounds them to the quantization steps of the range [min, max], adjusted such that 0 is a step."
	attrs := []string{"num_bits: int = 8", "narrow_range: bool = false"}
	rangeAttrs := append([]string{"min: float = -6.0", "max: float = 6.0"}, attrs...)
	gradOut := []string{"backprops_wrt_input: float32", "backprop_wrt_min: float32", "backprop_wrt_max: float32"}
	for _, f := range []struct {
		name, doc      string
		in, out, attrs []string
		shape          opdef.ShapeFn
		kind           fakeQuant
	}{
		{"FakeQuantWithMinMaxArgs", doc, []string{"inputs: float32"}, []string{"outputs: float32"}, rangeAttrs, opdef.SameShape, fakeQuant{fixed: true}},
		{"FakeQuantWithMinMaxArgsGradient", "", []string{"gradients: float32", "inputs: float32"}, []string{"backprops: float32"}, rangeAttrs,
			opdef.SameShape, fakeQuant{fixed: true, grad: true}},
		{"FakeQuantWithMinMaxVars", doc, []string{"inputs: float32", "min: float32", "max: float32"}, []string{"outputs: float32"}, attrs, varsShape, fakeQuant{}},
		{"FakeQuantWithMinMaxVarsGradient", "", []string{"gradients: float32", "inputs: float32", "min: float32", "max: float32"}, gradOut, attrs,
			varsGradShape, fakeQuant{grad: true}},
		{"FakeQuantWithMinMaxVarsPerChannel", doc + " Each channel, along the last dimension, has its own range.",
			[]string{"inputs: float32", "min: float32", "max: float32"}, []string{"outputs: float32"}, attrs, channelsShape, fakeQuant{perChannel: true}},
		{"FakeQuantWithMinMaxVarsPerChannelGradient", "", []string{"gradients: float32", "inputs: float32", "min: float32", "max: float32"},
			gradOut, attrs, channelsGradShape, fakeQuant{perChannel: true, grad: true}},
	} {
		text := f.doc
		if f.kind.grad {
			text = "Computes the gradient of " + f.name[:len(f.name)-len("Gradient")] + ": the gradient of its output where the input is in the range, and 0 elsewhere."
		}
		kernel.RegisterNew(opdef.Def{
			Name: f.name, Doc: text, In: f.in, Out: f.out, Attrs: f.attrs, Shape: f.shape,
		}, f.kind.newKernel)
	}
}

func varsShape(c *opdef.ShapeContext) error {
	c.Out[0] = c.In[0]
	return shapefn.CheckRanks(c, 1, 0, 0)
}

func varsGradShape(c *opdef.ShapeContext) error {
	in, err := opdef.MergeShapes(c.In[0], c.In[1])
	if err != nil {
		return err
	}
	scalar, err := opdef.WithRank(c.In[2], 0)
	if err == nil {
		_, err = opdef.MergeShapes(scalar, c.In[3])
	}
	c.Out[0], c.Out[1], c.Out[2] = in, scalar, scalar
	return err
}

func channelsShape(c *opdef.ShapeContext) error {
	in, err := opdef.WithRankAtLeast(c.In[0], 1)
	if err != nil {
		return err
	}
	if err := shapefn.CheckRanks(c, 1, 1, 1); err != nil {
		return err
	}
	for _, pair := range [][2]int64{{in.Dim(-1), c.In[1].Dim(0)}, {in.Dim(-1), c.In[2].Dim(0)}, {c.In[1].Dim(0), c.In[2].Dim(0)}} {
		if _, err := opdef.MergeDims(pair[0], pair[1]); err != nil {
			return err
		}
	}
	c.Out[0] = in
	return nil
}

func channelsGradShape(c *opdef.ShapeContext) error {
	in, err := opdef.WithRankAtLeast(c.In[0], 1)
	if err == nil {
		in, err = opdef.WithRankAtMost(in, 4)
	}
	if err == nil {
		in, err = opdef.MergeShapes(in, c.In[1])
	}
	if err != nil {
		return err
	}
	limits, err := opdef.WithRank(c.In[2], 1)
	if err == nil {
		limits, err = opdef.MergeShapes(limits, shapefn.Of(in.Dim(-1)))
	}
	if err == nil {
		limits, err = opdef.MergeShapes(c.In[3], limits)
	}
	c.Out[0], c.Out[1], c.Out[2] = in, limits, limits
	return err
}

// fakeQuant selects one of the operations.
type fakeQuant struct {
	fixed      bool // the range is given by attributes instead of inputs
	perChannel bool
	grad       bool
}

func (f fakeQuant) newKernel(c *kernel.Construction) (kernel.Kernel, error) {
	var lo, hi float32
	if f.fixed {
		if lo, hi = c.Attrs.Float("min"), c.Attrs.Float("max"); !(lo < hi) {
			return nil, status.InvalidArgumentf("min has to be smaller than max, was: %v >= %v", lo, hi)
		}
	}
	bits := c.Attrs.Int("num_bits")
	if bits < 2 || bits > 16 {
		return nil, status.InvalidArgumentf("num_bits must be between 2 and 16, inclusive")
	}
	s := steps{0, float32(int(1)<<bits - 1)}
	if c.Attrs.Bool("narrow_range") {
		s.first = 1
	}
	return kernel.Func(func(ctx *kernel.Context) error {
		ranges, err := f.ranges(ctx, s, lo, hi)
		if err != nil {
			return err
		}
		if f.grad {
			return f.gradient(ctx, ranges)
		}
		x := tensor.Values[float32](ctx.Input(0))
		out, err := ctx.Forward(0, 0)
		if err != nil {
			return err
		}
		z := tensor.Values[float32](out)
		rows(len(x), len(ranges), func(at, channel int) { z[at] = ranges[channel].round(x[at], !f.fixed && !f.perChannel) })
		return nil
	}), nil
}

// rows calls f with each index of a tensor and its channel.
func rows(n, channels int, f func(at, channel int)) {
	if n == 0 {
		return
	}
	parallel.For(n/channels, max(1, 10_000/channels), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			for c := range channels {
				f(i*channels+c, c)
			}
		}
	})
}

// ranges checks the inputs and returns the range of each channel.
func (f fakeQuant) ranges(ctx *kernel.Context, s steps, lo, hi float32) ([]span, error) {
	at := 0
	if f.grad {
		if at = 1; !ctx.Input(0).Shape().Equal(ctx.Input(1).Shape()) {
			if f.fixed {
				return nil, status.InvalidArgumentf("Inputs to operation %s of type FakeQuantWithMinMaxArgsGradient must have the same size and shape.  Input 0: %v != input 1: %v",
					ctx.Node, ctx.Input(0).Shape(), ctx.Input(1).Shape())
			}
			return nil, status.InvalidArgumentf("gradient and input must be the same size")
		}
	}
	if f.fixed {
		return []span{s.span(lo, hi)}, nil
	}
	in, rank, depth := ctx.Input(at), 0, 1
	if f.perChannel {
		if in.Rank() == 0 {
			return nil, status.InvalidArgumentf("inputs must be at least rank 1")
		}
		rank, depth = 1, in.Dim(in.Rank()-1)
	}
	for i, name := range []string{"min", "max"} {
		t := ctx.Input(at + 1 + i)
		if t.Rank() != rank {
			return nil, status.InvalidArgumentf("`%s` must be rank %d but is rank %d", name, rank, t.Rank())
		}
		if t.NumElements() != depth {
			return nil, status.InvalidArgumentf("%s has incorrect size, expected %d was %d", name, depth, t.NumElements())
		}
	}
	out := membudget.Make[span](depth)
	for i, v := range tensor.Values[float32](ctx.Input(at + 1)) {
		out[i] = s.span(v, tensor.Values[float32](ctx.Input(at + 2))[i])
	}
	return out, nil
}

func (f fakeQuant) gradient(ctx *kernel.Context, ranges []span) error {
	in := ctx.Input(1)
	out, err := ctx.Allocate(0, in.Shape())
	if err != nil {
		return err
	}
	g, x, z := tensor.Values[float32](ctx.Input(0)), tensor.Values[float32](in), tensor.Values[float32](out)
	rows(len(x), len(ranges), func(at, channel int) {
		if r := &ranges[channel]; r.empty || r.lo <= x[at] && x[at] <= r.hi {
			z[at] = g[at]
		} else {
			z[at] = 0 * g[at]
		}
	})
	if f.fixed {
		return nil
	}
	below, above := membudget.Make[float64](len(ranges)), membudget.Make[float64](len(ranges))
	for i, v := range x {
		c := i % len(ranges)
		if ranges[c].empty {
			continue
		}
		isBelow, isAbove := 0.0, 0.0 // factors; 0 turns a non-finite gradient into NaN
		switch {
		case v < ranges[c].lo:
			isBelow = 1
		case v > ranges[c].hi:
			isAbove = 1
		}
		below[c] += float64(g[i]) * isBelow
		above[c] += float64(g[i]) * isAbove
	}
	for i, sums := range [][]float64{below, above} {
		out, err := ctx.Allocate(1+i, ctx.Input(2).Shape())
		if err != nil {
			return err
		}
		for c, v := range sums {
			tensor.Values[float32](out)[c] = float32(v)
		}
	}
	return nil
}

// steps holds the numbers of the first and the last step of a range.
type steps struct{ first, last float32 }

// span is a range, adjusted such that 0 is one of its steps.
type span struct {
	lo, hi         float32
	scale, inverse float32 // length of a step, and its reciprocal
	zero           float32 // number of the step of value 0
	empty          bool
}

func (s steps) span(lo, hi float32) span {
	if lo == 0 && hi == 0 {
		return span{empty: true}
	}
	scale := (hi - lo) / (s.last - s.first)
	zero := s.first - lo/scale
	switch {
	case zero < s.first:
		zero = s.first
	case zero > s.last:
		zero = s.last
	default:
		zero = float32(math.Round(float64(zero)))
	}
	r := span{lo: (s.first - zero) * scale, hi: (s.last - zero) * scale, scale: scale, inverse: (s.last - s.first) / (hi - lo)}
	r.zero = float32(math.Floor(float64(float32(-r.lo*r.inverse) + 0.5)))
	return r
}

// round returns the value of the step closest to v. divides selects one of the two formulas that
// TensorFlow uses.
func (r *span) round(v float32, divides bool) float32 {
	if r.empty {
		return 0
	}
	v = max(min(v, r.hi), r.lo) - r.lo
	if divides {
		v /= r.scale
	} else {
		v = float32(v * r.inverse)
	}
	return float32(math.Floor(float64(v-r.zero+0.5))) * r.scale
}
