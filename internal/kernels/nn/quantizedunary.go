package nn

import (
	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/opkit/quantize"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	for name, six := range map[string]bool{"QuantizedRelu": false, "QuantizedRelu6": true} {
		doc := "Computes max(features, 0) of a quantized tensor."
		if six {
			doc = "Computes min(max(features, 0), 6) of a quantized tensor."
		}
		same := func(t tensor.DType) []kernel.Constraint {
			return []kernel.Constraint{kernel.OfType("Tinput", t), kernel.OfType("out_type", t)}
		}
		kernel.Register(kernel.Op{
			Def: opdef.Def{
				Name: name, Doc: doc,
				In:    []string{"features: Tinput", "min_features: float32", "max_features: float32"},
				Out:   []string{"activations: out_type", "min_activations: float32", "max_activations: float32"},
				Attrs: []string{"Tinput: " + quantize.Types, "out_type: " + quantize.Types + " = quint8"},
				Shape: quantize.Shape(func(c *opdef.ShapeContext) error { c.Out[0] = c.In[0]; return nil }, 1),
			},
			Kernels: []kernel.Impl{
				{Types: same(tensor.QUint8), New: kernel.Stateless(quantizedRelu[tensor.QUint8Elem](quantize.Uint8, six))},
				{Types: same(tensor.QInt32), New: kernel.Stateless(quantizedRelu[tensor.QInt32Elem](quantize.Int32, six))},
			},
		})
	}
	bias := func(t tensor.DType) []kernel.Constraint {
		return []kernel.Constraint{kernel.OfType("T1", t), kernel.OfType("T2", t), kernel.OfType("out_type", tensor.QInt32)}
	}
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "QuantizedBiasAdd", Doc: "Adds a bias to a quantized tensor along the channel dimension.",
			In:    []string{"input: T1", "bias: T2", "min_input: float32", "max_input: float32", "min_bias: float32", "max_bias: float32"},
			Out:   []string{"output: out_type", "min_out: float32", "max_out: float32"},
			Attrs: []string{"T1: " + quantize.Types, "T2: " + quantize.Types, "out_type: " + quantize.Types}, Shape: quantize.Shape(biasAddShape, 2),
		},
		Kernels: []kernel.Impl{
			{Types: bias(tensor.QUint8), New: kernel.Stateless(quantizedBiasAdd[tensor.QUint8Elem](quantize.Uint8))},
			{Types: bias(tensor.QInt8), New: kernel.Stateless(quantizedBiasAdd[tensor.QInt8Elem](quantize.Int8))},
		},
	})
}

func quantizedRelu[T tensor.QUint8Elem | tensor.QInt32Elem](ints quantize.IntType, six bool) kernel.Func {
	return func(ctx *kernel.Context) error {
		r, err := quantize.InputRange(ctx, 1, "`min_input`", "`max_input`")
		if err != nil {
			return err
		}
		x := tensor.Values[T](ctx.Input(0))
		out, err := ctx.Forward(0, 0)
		if err != nil {
			return err
		}
		z, least, most := tensor.Values[T](out), T(ints.Of(0, r)), T(ints.Last)
		if six {
			most = T(ints.Of(6, r))
		}
		parallel.For(len(z), 20_000, func(lo, hi int) {
			for i := lo; i < hi; i++ {
				z[i] = min(max(x[i], least), most)
			}
		})
		quantize.SetRange(ctx, 1, r)
		return nil
	}
}

// quantizedBiasAdd adds with an output range that is large enough to hold all sums.
func quantizedBiasAdd[T tensor.QUint8Elem | tensor.QInt8Elem](ints quantize.IntType) kernel.Func {
	return func(ctx *kernel.Context) error {
		rin, err := quantize.InputRange(ctx, 2, "`min_input`", "`max_input`")
		if err != nil {
			return err
		}
		rbias, err := quantize.InputRange(ctx, 4, "`min_bias`", "`max_bias`")
		if err != nil {
			return err
		}
		in, bias := ctx.Input(0), ctx.Input(1)
		switch {
		case in.Rank() < 2:
			return status.InvalidArgumentf("Input tensor must be at least 2D: %v", in.Shape())
		case bias.Rank() != 1:
			return status.InvalidArgumentf("Biases must be 1D: %v", bias.Shape())
		case bias.Dim(0) != in.Dim(in.Rank()-1):
			return status.InvalidArgumentf("Must provide as many biases as the last dimension of the input tensor: %v vs. %v", bias.Shape(), in.Shape())
		case bias.NumElements() == 0:
			return status.InvalidArgumentf("Must provide at least 1 bias")
		}
		out, err := ctx.Allocate(0, in.Shape())
		if err != nil {
			return err
		}
		top := max(rin.Max, -rin.Min, rbias.Max, -rbias.Min) * (1 << 17)
		total := quantize.Range{Min: -top, Max: top}
		zero := int32(quantize.Int32.Of(0, total))
		widen := func(r quantize.Range) (table [256]int32) {
			decode, encode := ints.Decoder(r), quantize.Int32.Encoder(total)
			for q := ints.First; q <= ints.Last; q++ {
				table[uint8(q)] = int32(encode(decode(q)))
			}
			return table
		}
		ofIn, ofBias := widen(rin), widen(rbias)
		x, b, z := tensor.Values[T](in), tensor.Values[T](bias), tensor.Values[tensor.QInt32Elem](out)
		parallel.For(len(z), 20_000, func(lo, hi int) {
			for i := lo; i < hi; i++ {
				z[i] = tensor.QInt32Elem(ofIn[uint8(x[i])] + ofBias[uint8(b[i%len(b)])] + zero)
			}
		})
		quantize.SetRange(ctx, 1, total)
		return nil
	}
}
