package quantize

import (
	"math"
	"slices"

	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/opkit/quantize"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	in := []string{"input: Tinput", "input_min: float32", "input_max: float32"}
	out := []string{"output: out_type", "output_min: float32", "output_max: float32"}
	attrs := []string{"Tinput: " + quantize.Types, "out_type: " + quantize.Types}
	pair := func(out tensor.DType) []kernel.Constraint {
		return []kernel.Constraint{kernel.OfType("Tinput", tensor.QInt32), kernel.OfType("out_type", out)}
	}
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "QuantizeDownAndShrinkRange", Doc: "Converts quantized input to a narrower type, over the range of the actual values.",
			In: in, Out: out, Attrs: attrs, Shape: quantize.Shape(first, 1),
		},
		Kernels: []kernel.Impl{{Types: pair(tensor.QUint8), New: kernel.Stateless(shrinkRange)}},
	})
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "Requantize", Doc: "Converts quantized input to a narrower type, over the given range.",
			In: append(slices.Clip(in), "requested_output_min: float32", "requested_output_max: float32"), Out: out, Attrs: attrs,
			Shape: quantize.Shape(first, 1),
		},
		Kernels: []kernel.Impl{
			{Types: pair(tensor.QUint8), New: kernel.Stateless(requantize(narrow))},
			{Types: pair(tensor.QInt8), New: kernel.Stateless(requantize(narrowSigned))},
		},
	})
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "RequantizationRange", Doc: "Computes the range of the actual values of a quantized tensor.",
			In: in, Out: out[1:], Attrs: attrs[:1], Shape: usedRangeShape,
		},
		Kernels: kernel.ForTypes("Tinput", kernel.Stateless(requantizationRange), tensor.QInt32),
	})
}

// first is the shape function of operations whose first output has the shape of their first input.
func first(c *opdef.ShapeContext) error {
	c.Out[0] = c.In[0]
	return nil
}

func usedRangeShape(c *opdef.ShapeContext) error {
	c.SetAll(shapefn.Of())
	return shapefn.CheckRanks(c, 1, 0, 0)
}

// used returns the range of the values of q, extended to include 0. r is the range of their type.
func used(q []tensor.QInt32Elem, r quantize.Range) quantize.Range {
	lo, hi := tensor.QInt32Elem(math.MaxInt32), tensor.QInt32Elem(math.MinInt32)
	for _, v := range q {
		lo, hi = min(lo, v), max(hi, v)
	}
	return quantize.Range{Min: min(0, quantize.Int32.Value(int64(lo), r)), Max: quantize.Int32.Value(int64(hi), r)}
}

// narrow converts integers of range from to integers of range to.
func narrow(out *tensor.Tensor, q []tensor.QInt32Elem, from, to quantize.Range) {
	z, f := tensor.Values[tensor.QUint8Elem](out), quantize.Narrow(from, to)
	parallel.For(len(z), 10_000, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			z[i] = tensor.QUint8Elem(f(int32(q[i])))
		}
	})
}

func narrowSigned(out *tensor.Tensor, q []tensor.QInt32Elem, from, to quantize.Range) {
	z, decode, encode := tensor.Values[tensor.QInt8Elem](out), quantize.Int32.Decoder(from), quantize.Int8.Encoder(to)
	parallel.For(len(z), 5_000, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			z[i] = tensor.QInt8Elem(encode(decode(int64(q[i]))))
		}
	})
}

func shrinkRange(ctx *kernel.Context) error {
	from, err := quantize.InputRange(ctx, 1, "`input_min`", "`input_max`")
	if err != nil {
		return err
	}
	in := ctx.Input(0)
	out, err := ctx.Allocate(0, in.Shape())
	if err != nil {
		return err
	}
	q := tensor.Values[tensor.QInt32Elem](in)
	to := used(q, from)
	narrow(out, q, from, to)
	quantize.SetRange(ctx, 1, to)
	return nil
}

func requantize(narrow func(*tensor.Tensor, []tensor.QInt32Elem, quantize.Range, quantize.Range)) kernel.Func {
	return func(ctx *kernel.Context) error {
		from, err := quantize.InputRange(ctx, 1, "`input_min`", "`input_max`")
		if err != nil {
			return err
		}
		to, err := quantize.InputRange(ctx, 3, "`requested_output_min`", "`requested_output_max`")
		if err != nil {
			return err
		}
		switch {
		case !(to.Min <= 0):
			return status.InvalidArgumentf("requested_output_min must be <= 0, but got %s", number(to.Min))
		case !(to.Max >= to.Min):
			return status.InvalidArgumentf("requested_output_max must be >= requested_output_min, but got %s and %s", number(to.Max), number(to.Min))
		}
		out, err := ctx.Allocate(0, ctx.Input(0).Shape())
		if err != nil {
			return err
		}
		narrow(out, tensor.Values[tensor.QInt32Elem](ctx.Input(0)), from, to)
		quantize.SetRange(ctx, 1, to)
		return nil
	}
}

// number formats a number as TensorFlow's messages do.
func number(v float32) string { return tensor.FormatFloat(float64(v), 32) }

func requantizationRange(ctx *kernel.Context) error {
	for i, name := range []string{"min", "max"} {
		if ctx.Input(1+i).NumElements() == 0 {
			return status.InvalidArgumentf("Input %s must not be empty.", name)
		}
	}
	r := quantize.Range{Min: tensor.Values[float32](ctx.Input(1))[0], Max: tensor.Values[float32](ctx.Input(2))[0]}
	quantize.SetRange(ctx, 0, used(tensor.Values[tensor.QInt32Elem](ctx.Input(0)), r))
	return nil
}
