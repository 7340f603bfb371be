package nn

import (
	"slices"

	"github.com/weft-ml/weft/internal/opkit/quantize"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "QuantizedConv2D", Doc: "Computes a 2-D convolution of a quantized input and a quantized filter.",
			In:  []string{"input: Tinput", "filter: Tfilter", "min_input: float32", "max_input: float32", "min_filter: float32", "max_filter: float32"},
			Out: []string{"output: out_type", "min_output: float32", "max_output: float32"},
			Attrs: []string{"Tinput: " + quantize.Types, "Tfilter: " + quantize.Types, "out_type: " + quantize.Types + " = qint32", "strides: list(int)",
				samePadding, "dilations: list(int) = [1, 1, 1, 1]"},
			Shape: quantize.Shape(conv2DShape, 2),
		},
		Kernels: []kernel.Impl{{
			Types: []kernel.Constraint{kernel.OfType("Tinput", tensor.QUint8), kernel.OfType("Tfilter", tensor.QUint8), kernel.OfType("out_type", tensor.QInt32)}, New: newQuantizedConv,
		}},
	})
}

func newQuantizedConv(c *kernel.Construction) (kernel.Kernel, error) {
	strides, dilations := c.Attrs.Ints("strides"), c.Attrs.Ints("dilations")
	switch {
	case len(strides) != 4:
		return nil, status.InvalidArgumentf("Sliding window strides field must specify 4 dimensions")
	case strides[1] != strides[2]:
		return nil, status.InvalidArgumentf("Current implementation only supports equal length strides in the row and column dimensions.")
	case strides[0] != 1 || strides[3] != 1:
		return nil, status.InvalidArgumentf("Current implementation does not yet support strides in the batch and depth dimensions.")
	case len(dilations) != 4:
		return nil, status.InvalidArgumentf("Dilations field must specify 4 dimensions")
	case dilations[1] != 1 || dilations[2] != 1:
		return nil, status.InvalidArgumentf("Current implementation only supports dilated rate as 1 in the row and column dimensions.")
	case dilations[0] != 1 || dilations[3] != 1:
		return nil, status.InvalidArgumentf("Current implementation does not yet support dilations in the batch and depth dimensions.")
	}
	w := &window{axes: axesOf(c.Attrs, 2), padding: c.Attrs.String("padding"), stride: strides[1:3], dilation: dilations[1:3]}
	return kernel.Func(func(ctx *kernel.Context) error { return quantizedConv(ctx, w) }), nil
}

func quantizedConv(ctx *kernel.Context, w *window) error {
	in, filter := ctx.Input(0), ctx.Input(1)
	if slices.Contains(in.Shape(), 0) {
		return status.InvalidArgumentf("Invalid input: Shapes dimension cannot be 0.")
	}
	for i, name := range []string{"input", "filter"} {
		if rank := ctx.Input(i).Rank(); rank != 4 {
			return status.InvalidArgumentf("%s must be rank 4 but is rank %d", name, rank)
		}
	}
	rin, err := quantize.InputRange(ctx, 2, "min_input", "max_input")
	if err != nil {
		return err
	}
	rfilter, err := quantize.InputRange(ctx, 4, "min_filter", "max_filter")
	if err != nil {
		return err
	}
	if in.Dim(3) != filter.Dim(2) {
		return status.InvalidArgumentf("input and filter must have the same depth: %d vs %d", in.Dim(3), filter.Dim(2))
	}
	s, _, err := w.size(in.Shape(), filter.Shape())
	if err != nil {
		return err
	}
	switch {
	case s.OutW <= 0:
		return status.InvalidArgumentf("output_width must be strictly positive")
	case s.OutH <= 0:
		return status.InvalidArgumentf("output_height must be strictly positive")
	case filter.NumElements() == 0:
		return status.InvalidArgumentf("filter patch must contain at least one element")
	}
	s.PadTop, s.PadLeft = w.quantizedPad(s.InH, s.FilterH, s.OutH, s.StrideH), w.quantizedPad(s.InW, s.FilterW, s.OutW, s.StrideW)
	out, err := ctx.Allocate(0, tensor.Shape{int64(s.Batch), int64(s.OutH), int64(s.OutW), int64(s.OutC)})
	if err != nil {
		return err
	}
	sums, err := out.WithDType(tensor.Int32)
	if err != nil {
		return err
	}
	plainEngine[int32]().forward(&s, tensor.Values[int32](&sums), fromZero(in, rin), fromZero(filter, rfilter))
	quantize.SetRange(ctx, 1, quantize.Product(quantize.Uint8, rin, quantize.Uint8, rfilter))
	return nil
}

// fromZero returns the quantized values of t minus the quantized value of 0.
func fromZero(t *tensor.Tensor, r quantize.Range) []int32 {
	zero, q := int32(quantize.Uint8.Unclamped(0, r)), tensor.Values[tensor.QUint8Elem](t)
	out := membudget.Make[int32](len(q))
	for i, v := range q {
		out[i] = int32(v) - zero
	}
	return out
}

// quantizedPad returns the padding before a dimension. It is negative where strides skip pixels at
// both ends. Other convolutions skip them only at the end.
func (w *window) quantizedPad(in, filter, out, stride int) int {
	over := (out-1)*stride + filter - in
	if w.padding == paddingValid {
		over++
	}
	return over / 2
}
