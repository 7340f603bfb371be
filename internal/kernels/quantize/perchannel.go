package quantize

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
			Name: "RequantizePerChannel", Doc: "Requantizes input, whose channels have their own ranges, to a narrower type with one range.",
			In:    []string{"input: T", "input_min: float32", "input_max: float32", "requested_output_min: float32", "requested_output_max: float32"},
			Out:   []string{"output: out_type", "output_min: float32", "output_max: float32"},
			Attrs: []string{"T: " + quantize.Types + " = qint32", "out_type: " + quantize.Types + " = quint8"}, Shape: requantizeChannelsShape,
		},
		Kernels: []kernel.Impl{
			{Types: []kernel.Constraint{kernel.OfType("T", tensor.QInt32), kernel.OfType("out_type", tensor.QInt8)}, New: kernel.Stateless(requantizeChannels[tensor.QInt8Elem](quantize.Int8))},
			{Types: []kernel.Constraint{kernel.OfType("T", tensor.QInt32), kernel.OfType("out_type", tensor.QUint8)}, New: kernel.Stateless(requantizeChannels[tensor.QUint8Elem](quantize.Uint8))},
		},
	})
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "RequantizationRangePerChannel", Doc: "Computes the requantization range of input, whose channels have their own ranges.",
			In: []string{"input: T", "input_min: float32", "input_max: float32"}, Out: []string{"output_min: float32", "output_max: float32"},
			Attrs: []string{"T: " + quantize.Types + " = qint32", "clip_value_max: float"}, Shape: channelsRangeShape,
		},
		Kernels: kernel.ForTypes("T", newChannelsRange, tensor.QInt32),
	})
}

func requantizeChannelsShape(c *opdef.ShapeContext) error {
	c.Out[0], c.Out[1], c.Out[2] = c.In[0], shapefn.Of(), shapefn.Of()
	return shapefn.CheckRanks(c, 1, 1, 1, 0, 0)
}

func channelsRangeShape(c *opdef.ShapeContext) error {
	c.SetAll(shapefn.Of())
	return shapefn.CheckRanks(c, 1, 1, 1)
}

// reach returns the larger absolute limit of each channel's range.
func reach(ctx *kernel.Context) []float32 {
	lo, hi := tensor.Values[float32](ctx.Input(1)), tensor.Values[float32](ctx.Input(2))
	out := membudget.Make[float32](len(lo))
	for i := range out {
		out[i] = max(abs(lo[i]), abs(hi[i]))
	}
	return out
}

func requantizeChannels[T tensor.QInt8Elem | tensor.QUint8Elem](ints quantize.IntType) kernel.Func {
	return func(ctx *kernel.Context) error {
		in, depth := ctx.Input(0), ctx.Input(1).NumElements()
		switch n := ctx.Input(2).NumElements(); {
		case in.Rank() != 4:
			return status.InvalidArgumentf("Current RequantizePerChannel operatorsupports 4D tensors only.")
		case n != depth:
			return status.InvalidArgumentf("input_max has incorrect size, expected %d was %d", depth, n)
		case depth != in.Dim(3):
			return status.InvalidArgumentf("input_min has incorrect size, expected %d was %d", in.Dim(3), depth)
		case ctx.Input(3).NumElements() != 1:
			return status.InvalidArgumentf("requested_output_min must be a scalar")
		case ctx.Input(4).NumElements() != 1:
			return status.InvalidArgumentf("requested_output_max must be a scalar")
		}
		to := quantize.Range{Min: tensor.Values[float32](ctx.Input(3))[0], Max: tensor.Values[float32](ctx.Input(4))[0]}
		if ints.First < 0 && !(to.Min < 0) {
			return status.InvalidArgumentf("If out_type is QINT8, requested_output_max must be non negative, got %s", number(to.Min))
		}
		out, err := ctx.Allocate(0, in.Shape())
		if err != nil {
			return err
		}
		scales := reach(ctx)
		for i, r := range scales {
			scales[i] = float32(ints.Last) * (r / max(abs(to.Min), abs(to.Max)) / (1 << 31))
		}
		q, z := tensor.Values[tensor.QInt32Elem](in), tensor.Values[T](out)
		for i, v := range q {
			exact := math.RoundToEven(float64(float32(v) * scales[i%depth]))
			z[i] = T(int64(min(max(exact, float64(ints.First)), float64(ints.Last))))
		}
		quantize.SetRange(ctx, 1, to)
		return nil
	}
}

func newChannelsRange(c *kernel.Construction) (kernel.Kernel, error) {
	clip := c.Attrs.Float("clip_value_max")
	return kernel.Func(func(ctx *kernel.Context) error {
		in, depth := ctx.Input(0), ctx.Input(2).NumElements()
		for i, name := range []string{"input_min", "input_max"} {
			if t := ctx.Input(1 + i); t.Rank() == 0 || t.Dim(0) != depth || t.NumElements() != depth {
				return status.InvalidArgumentf("%s has incorrect size, expected %d was %d", name, depth, t.NumElements())
			}
		}
		switch {
		case in.NumElements() == 0:
			return status.InvalidArgumentf("input must not be empty")
		case in.Rank() != 4:
			return status.InvalidArgumentf("input must be in NHWC format")
		case in.Dim(3) != depth:
			return status.InvalidArgumentf("input must have same number of channels as length of input_min: %d vs %d", in.Dim(3), depth)
		}
		largest, negative := membudget.Make[float32](depth), false
		for i, v := range tensor.Values[tensor.QInt32Elem](in) {
			negative = negative || v < 0
			largest[i%depth] = max(largest[i%depth], float32(math.Abs(float64(v))))
		}
		top := float32(leastNormal)
		for i, r := range reach(ctx) {
			top = max(top, r*largest[i]/(1<<31))
		}
		top = min(top, clip)
		r := quantize.Range{Max: top}
		if negative {
			r.Min = -top
		}
		quantize.SetRange(ctx, 0, r)
		return nil
	}), nil
}
