package quantize

import (
	"math"

	"github.com/weft-ml/weft/internal/numeric/simd"
	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	const doc = "Quantizes then dequantizes a tensor: rounds it to the steps of num_bits-bit integers over a range. "
	const types = "T: {bfloat16, float16, float32, float64}"
	limits := []string{"input: T", "input_min: T", "input_max: T"}
	attrs := []string{
		"signed_input: bool = true", "num_bits: int = 8", "range_given: bool = false", types,
		"round_mode: {'HALF_TO_EVEN', 'HALF_UP'} = 'HALF_TO_EVEN'", "narrow_range: bool = false", "axis: int = -1",
	}
	for _, op := range []struct {
		name      string
		in, attrs []string
		shape     opdef.ShapeFn
		read      func(*kernel.Construction) roundTrip
	}{
		{"QuantizeAndDequantize", limits[:1], []string{
			"signed_input: bool = true", "num_bits: int = 8", "range_given: bool = false", "input_min: float = 0.0", "input_max: float = 0.0", types,
		}, opdef.SameShape, readV1},
		{"QuantizeAndDequantizeV2", limits, attrs, axisShape(0), readV2},
		{"QuantizeAndDequantizeV3", append(limits[:3:3], "num_bits: int32"),
			[]string{"signed_input: bool = true", "range_given: bool = true", types, "narrow_range: bool = false", "axis: int = -1"},
			axisShape(0), readV3},
		{"QuantizeAndDequantizeV4", limits, attrs, axisShape(0), readV2},
	} {
		kernel.Register(kernel.Op{
			Def: opdef.Def{Name: op.name, Doc: doc + "The range is given, or that of the input.", In: op.in, Out: []string{"output: T"}, Attrs: op.attrs, Shape: op.shape},
			Kernels: kernel.ByType("T", kernel.Table{
				tensor.Float32: newRoundTrip[float32](op.read, math.MaxFloat32), tensor.Float64: newRoundTrip[float64](op.read, math.MaxFloat64),
			}),
		})
	}
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "QuantizeAndDequantizeV4Grad", Doc: "Computes the gradient of QuantizeAndDequantizeV4: the gradient of its output where the input is in the range, and 0 elsewhere.",
			In:  []string{"gradients: T", "input: T", "input_min: T", "input_max: T"},
			Out: []string{"input_backprop: T", "input_min_backprop: T", "input_max_backprop: T"}, Attrs: []string{types, "axis: int = -1"},
			Shape: axisShape(1),
		},
		Kernels: kernel.ByType("T", kernel.Table{tensor.Float32: newRoundTripGrad[float32], tensor.Float64: newRoundTripGrad[float64]}),
	})
}

// axisShape returns the shape function for input i, which is followed by the limits of its range.
func axisShape(i int) opdef.ShapeFn {
	return func(c *opdef.ShapeContext) error {
		axis, rank := c.Attrs.Int("axis"), 1
		if axis == -1 {
			rank = 0
		}
		limits, err := opdef.WithRank(c.In[i+1], rank)
		if err == nil {
			limits, err = opdef.MergeShapes(c.In[i+2], limits)
		}
		switch {
		case err != nil:
			return err
		case axis < -1:
			return status.InvalidArgumentf("axis should be at least -1, got %d", axis)
		case axis >= math.MaxInt32:
			return status.InvalidArgumentf("Axis cannot be >= kint32max value, got %d", axis)
		case axis >= 0:
			in, err := opdef.WithRankAtLeast(c.In[0], axis+1)
			if err != nil {
				return err
			}
			if in.Rank() >= 0 {
				if _, err := opdef.MergeDims(limits.Dim(0), in.Dim(axis)); err != nil {
					return err
				}
			}
		}
		if len(c.In) == 4 && i == 0 {
			if err := shapefn.CheckRanks(c, 3, 0); err != nil {
				return err
			}
		}
		c.Out[0] = c.In[0]
		if i == 1 {
			c.Out[1], c.Out[2] = limits, limits
			c.Out[0], err = opdef.MergeShapes(c.In[0], c.In[1])
		}
		return err
	}
}

// roundTrip holds the attributes of an operation.
type roundTrip struct {
	version       int
	signed, given bool
	narrow        bool
	halfUp        bool
	bits          int // value of the attribute num_bits
	axis          int
	lo, hi        float32 // attributes of version 1
}

func readV1(c *kernel.Construction) roundTrip {
	return roundTrip{
		version: 1, signed: c.Attrs.Bool("signed_input"), given: c.Attrs.Bool("range_given"), bits: c.Attrs.Int("num_bits"), axis: -1,
		lo: c.Attrs.Float("input_min"), hi: c.Attrs.Float("input_max"),
	}
}

func readV2(c *kernel.Construction) roundTrip {
	return roundTrip{
		version: 2, signed: c.Attrs.Bool("signed_input"), given: c.Attrs.Bool("range_given"), bits: c.Attrs.Int("num_bits"), axis: c.Attrs.Int("axis"),
		narrow: c.Attrs.Bool("narrow_range"), halfUp: c.Attrs.String("round_mode") == "HALF_UP",
	}
}

func readV3(c *kernel.Construction) roundTrip {
	return roundTrip{
		version: 3, signed: c.Attrs.Bool("signed_input"), given: c.Attrs.Bool("range_given"), axis: c.Attrs.Int("axis"), narrow: c.Attrs.Bool("narrow_range"),
	}
}

func (r *roundTrip) checkBits(bits int, name string) error {
	limit, signed := 63, 0
	if r.signed {
		limit, signed = 62, 1
	}
	if bits <= 0 || bits >= limit {
		return status.InvalidArgumentf("num_bits is out of range: %d with %s %d", bits, name, signed)
	}
	return nil
}

func newRoundTrip[T simd.Float](read func(*kernel.Construction) roundTrip, largest T) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		r := read(c)
		if r.version != 3 {
			if err := r.checkBits(r.bits, "signed_input_"); err != nil {
				return nil, err
			}
		}
		if r.version == 1 && r.given && !(r.lo <= r.hi) {
			return nil, status.InvalidArgumentf("Invalid range: input_min %v > input_max %v", r.lo, r.hi)
		}
		return kernel.Func(func(ctx *kernel.Context) error {
			in, bits, depth := ctx.Input(0), r.bits, 1
			axis, err := r.checkAxis(in.Rank())
			if err != nil {
				return err
			}
			if axis >= 0 {
				depth = in.Dim(axis)
			}
			if r.version == 3 {
				t := ctx.Input(3)
				if t.Rank() != 0 {
					return status.InvalidArgumentf("Invalid shape. The `num_bits` tensor should be a scalar. Got dimensions: %d", t.Rank())
				}
				bits = int(intarg.Scalar(t))
				if err := r.checkBits(bits, "`signed_input_`"); err != nil {
					return err
				}
			}
			x := tensor.Values[T](in)
			lo, hi, err := limits(ctx, &r, depth, x, innerSize(in.Shape(), axis))
			if err != nil {
				return err
			}
			out, err := ctx.Allocate(0, in.Shape())
			if err != nil {
				return err
			}
			z, inner := tensor.Values[T](out), innerSize(in.Shape(), axis)
			for ch := range depth {
				g := newGrid(lo[ch], hi[ch], largest, bits, r.signed, r.narrow)
				eachOf(len(x), depth, inner, ch, func(at int) { z[at] = g.round(x[at], r.given, r.halfUp) })
			}
			return nil
		}), nil
	}
}

// checkAxis returns the axis of the ranges, or -1 for a single range.
func (r *roundTrip) checkAxis(rank int) (int, error) {
	switch {
	case r.version == 3 && (r.axis < -rank || r.axis >= rank):
		return 0, status.InvalidArgumentf("Axis requested is larger than input dimensions. Axis: %d Input Dimensions: %d", r.axis, rank)
	case r.axis < -1:
		return 0, status.InvalidArgumentf("Axis must be at least -1. Found %d", r.axis)
	case r.axis >= rank:
		return 0, status.InvalidArgumentf("Shape must be at least rank %d but is rank %d", r.axis+1, rank)
	}
	return r.axis, nil
}

// innerSize returns the number of elements between neighbours along an axis.
func innerSize(s tensor.Shape, axis int) int {
	if axis < 0 {
		return int(s.NumElements())
	}
	return int(s[axis+1:].NumElements())
}

// eachOf calls f with the indices of a channel's elements.
func eachOf(n, depth, inner, channel int, f func(at int)) {
	for first := channel * inner; first < n; first += depth * inner {
		for at := first; at < first+inner; at++ {
			f(at)
		}
	}
}

// limits returns the ranges of the channels.
func limits[T simd.Float](ctx *kernel.Context, r *roundTrip, depth int, x []T, inner int) (lo, hi []T, err error) {
	switch {
	case r.given && r.version == 1:
		return []T{T(r.lo)}, []T{T(r.hi)}, nil
	case r.given:
		if err := r.checkLimits(ctx, depth); err != nil {
			return nil, nil, err
		}
		lo, hi = tensor.Values[T](ctx.Input(1)), tensor.Values[T](ctx.Input(2))
		if r.axis == -1 && !(lo[0] <= hi[0]) {
			return nil, nil, status.InvalidArgumentf("Invalid range: input_min %v > input_max %v", lo[0], hi[0])
		}
		return lo, hi, nil
	}
	lo, hi = membudget.Make[T](depth), membudget.Make[T](depth)
	for c := range depth {
		least, greatest := T(math.Inf(1)), T(math.Inf(-1))
		eachOf(len(x), depth, inner, c, func(at int) {
			if v := x[at]; v < least {
				least = v
			}
			if v := x[at]; v > greatest {
				greatest = v
			}
		})
		lo[c], hi[c] = least, greatest
	}
	return lo, hi, nil
}

func (r *roundTrip) checkLimits(ctx *kernel.Context, depth int) error {
	for i, name := range []string{"input_min", "input_max"} {
		t := ctx.Input(1 + i)
		isScalar := t.Rank() == 0 || r.version == 3 && t.NumElements() == 1
		if (r.version == 2 || r.axis == -1) && !isScalar {
			return status.InvalidArgumentf("%s must be a scalar.", name)
		}
		if r.axis == -1 {
			continue
		}
		if t.Rank() != 1 {
			return status.InvalidArgumentf("Shape must be rank 1 for %s_tensor when the axis is specified", name)
		}
		if t.NumElements() != depth {
			return status.InvalidArgumentf("%s_tensor has incorrect size, was %d expected %d to match dim %d of the input %v",
				name, t.NumElements(), depth, r.axis, t.Shape())
		}
	}
	return nil
}

// grid holds the steps of a range.
type grid[T simd.Float] struct{ lo, hi, scale, inverse T }

func newGrid[T simd.Float](lo, hi, largest T, bits int, signed, narrow bool) grid[T] {
	first, last := int64(0), int64(1)<<bits-1
	if signed {
		first, last = -1<<(bits-1), 1<<(bits-1)-1
		if narrow {
			first++
		}
	}
	fromLo, fromHi := largest, largest
	if T(first)*lo > 0 {
		fromLo = T(first) / lo
	}
	if T(last)*hi > 0 {
		fromHi = T(last) / hi
	}
	if fromLo < fromHi {
		inverse := lo / T(first)
		return grid[T]{lo, T(last) * inverse, fromLo, inverse}
	}
	inverse := hi / T(last)
	return grid[T]{T(first) * inverse, hi, fromHi, inverse}
}

func (g *grid[T]) round(v T, clamps, halfUp bool) T {
	if clamps && v > g.hi {
		v = g.hi
	}
	if clamps && v < g.lo {
		v = g.lo
	}
	v *= g.scale
	if halfUp {
		return T(math.Floor(float64(v+0.5))) * g.inverse
	}
	return T(math.RoundToEven(float64(v))) * g.inverse
}

func newRoundTripGrad[T simd.Float](c *kernel.Construction) (kernel.Kernel, error) {
	axis := c.Attrs.Int("axis")
	return kernel.Func(func(ctx *kernel.Context) error {
		grad, in := ctx.Input(0), ctx.Input(1)
		depth := 1
		switch {
		case axis < -1:
			return status.InvalidArgumentf("Axis must be at least -1. Found %d", axis)
		case axis >= in.Rank():
			return status.InvalidArgumentf("Axis should be -1 or 0 or a positive value less than %dbut given axis value was %d", in.Rank(), axis)
		case !in.Shape().Equal(grad.Shape()):
			return status.InvalidArgumentf("gradient and input must be the same size")
		case axis >= 0:
			depth = in.Dim(axis)
		}
		if err := checkGradLimits(ctx, axis, depth); err != nil {
			return err
		}
		out, err := ctx.Allocate(0, in.Shape())
		if err != nil {
			return err
		}
		for i := 1; i < 3; i++ {
			if _, err := ctx.AllocateZeros(i, ctx.Input(2).Shape()); err != nil {
				return err
			}
		}
		g, x, z := tensor.Values[T](grad), tensor.Values[T](in), tensor.Values[T](out)
		lo, hi := tensor.Values[T](ctx.Input(2)), tensor.Values[T](ctx.Input(3))
		for ch := range depth {
			eachOf(len(x), depth, innerSize(in.Shape(), axis), ch, func(at int) {
				if z[at] = 0 * g[at]; lo[ch] <= x[at] && x[at] <= hi[ch] {
					z[at] = g[at]
				}
			})
		}
		return nil
	}), nil
}

func checkGradLimits(ctx *kernel.Context, axis, depth int) error {
	names := []string{"min", "max"}
	for i, name := range names {
		if t := ctx.Input(2 + i); t.Rank() > 1 {
			return status.InvalidArgumentf("Input %s tensor must have dimension 0 or 1. Received %d.", name, t.Rank())
		}
	}
	for i, name := range names {
		switch t := ctx.Input(2 + i); {
		case axis == -1 && t.Rank() != 0:
			return status.InvalidArgumentf("input_%s must be a scalar if axis is unspecified", name)
		case axis >= 0 && t.Rank() != 1:
			return status.InvalidArgumentf("Shape must be rank 1 for input_%s_tensor when the axis is specified", name)
		}
	}
	for i, name := range names {
		if n := ctx.Input(2 + i).NumElements(); axis >= 0 && n != depth {
			return status.InvalidArgumentf("%s has incorrect size, expected %d was %d", name, depth, n)
		}
	}
	return nil
}
