package nn

import (
	"slices"
	"strings"

	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/numeric/simd"
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	fused := []string{"fused_ops: list(string) = []", "epsilon: float = 9.999999747378752e-05", "leakyrelu_alpha: float = 0.20000000298023224"}
	in := []string{"input: T", "filter: T", "args: num_args * T"}
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "_FusedDepthwiseConv2dNative",
			Doc:  "Computes DepthwiseConv2dNative followed by a BiasAdd and optionally an activation function. Created by graph optimizers.",
			In:   in, Out: []string{"output: T"},
			Attrs: slices.Concat([]string{
				"T: " + floatTypes, "num_args: int >= 0", "strides: list(int)", samePadding, dataFormat2D, "dilations: list(int) = [1, 1, 1, 1]",
			}, fused),
			Shape: depthwiseShape,
		},
		Kernels: kernel.ByType("T", kernel.Table{
			tensor.Float16: newFusedDepthwise(shortBias[tensor.Float16Elem]()), tensor.BFloat16: newFusedDepthwise(shortBias[tensor.BFloat16Elem]()),
			tensor.Float32: newFusedDepthwise(floatBias[float32]()), tensor.Float64: newFusedDepthwise(floatBias[float64]()),
		}),
	})
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "_FusedConv3D",
			Doc:  "Computes Conv3D followed by a BiasAdd and optionally an activation function. Pads the input first if padding_list is given. Created by graph optimizers.",
			In:   in, Out: []string{"output: T"},
			Attrs: slices.Concat([]string{
				"T: {bfloat16, float32, float16}", "num_args: int >= 0", "strides: list(int) >= 5", samePadding, dataFormat3D,
				"dilations: list(int) = [1, 1, 1, 1, 1]", "padding_list: list(int) = []",
			}, fused),
			Shape: fusedVolumeShape,
		},
		Kernels: kernel.ByType("T", kernel.Table{
			tensor.Float16:  newFusedVolume(shortBias[tensor.Float16Elem]()),
			tensor.BFloat16: newFusedVolume(shortBias[tensor.BFloat16Elem]()),
			tensor.Float32:  newFusedVolume(floatBias[float32]()),
		}),
	})
}

// biasEngine computes with numbers of type T on elements of type E.
type biasEngine[T simd.Float, E tensor.Elem] struct {
	wide   func([]E) []T
	output func(y []E) (z []T, done func()) // done stores z in y
}

func floatBias[T simd.Float]() biasEngine[T, T] {
	return biasEngine[T, T]{func(x []T) []T { return x }, func(y []T) ([]T, func()) { return y, func() {} }}
}

func shortBias[H elementwise.Short]() biasEngine[float32, H] {
	return biasEngine[float32, H]{widened[H], func(y []H) ([]float32, func()) {
		z := membudget.Make[float32](len(y))
		return z, func() { elementwise.Narrow(y, z) }
	}}
}

// biasSteps describes what is fused with a convolution: a bias and perhaps an activation function.
type biasSteps struct {
	activation string
	alpha      float64
}

func newBiasSteps(c *kernel.Construction) (biasSteps, error) {
	fused := c.Attrs.Strings("fused_ops")
	s := biasSteps{alpha: float64(c.Attrs.Float("leakyrelu_alpha"))}
	if len(fused) == 2 {
		s.activation = fused[1]
	}
	if len(fused) == 0 || len(fused) > 2 || fused[0] != "BiasAdd" || !slices.Contains(activations, s.activation) {
		return s, status.Unimplementedf("Fusion is not implemented: [%s]", strings.Join(fused, ","))
	}
	if n := c.Attrs.Int("num_args"); n != 1 {
		return s, status.InvalidArgumentf("%s with BiasAdd must have one extra argument: bias, but has %d", c.Op.Name, n)
	}
	return s, nil
}

// finishBias adds the bias to the rows of z and applies the activation function.
func finishBias[T simd.Float](s *biasSteps, z, bias []T) {
	activate, channels := activation[T](s.activation, s.alpha), len(bias)
	parallel.For(len(z)/channels, max(1, 10_000/channels), func(lo, hi int) {
		part := z[lo*channels : hi*channels]
		for row := range slices.Chunk(part, channels) {
			simd.Add(row, row, bias)
		}
		activate(part, part)
	})
}

func checkBiasVector(ctx *kernel.Context, channels int) error {
	if bias := ctx.Input(2); bias.Rank() != 1 || bias.Dim(0) != channels {
		return status.InvalidArgumentf("bias must be a vector of %d elements, has shape %v", channels, bias.Shape())
	}
	return nil
}

func newFusedDepthwise[T simd.Float, E tensor.Elem](e biasEngine[T, E]) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		w, err := newDepthwiseWindow(c.Attrs)
		if err != nil {
			return nil, err
		}
		steps, err := newBiasSteps(c)
		if err != nil {
			return nil, err
		}
		engine := depthwiseEngine[T]()
		return kernel.Func(func(ctx *kernel.Context) error {
			s, out, err := w.depthwiseOutput(ctx)
			if err != nil {
				return err
			}
			if err := checkBiasVector(ctx, s.OutC); err != nil || out.NumElements() == 0 {
				return err
			}
			return mapLast(w.axes, out, ctx.Input(0), func(y, x []E) {
				z, done := e.output(y)
				engine.forward(&s, z, e.wide(x), e.wide(tensor.Values[E](ctx.Input(1))))
				finishBias(&steps, z, e.wide(tensor.Values[E](ctx.Input(2))))
				done()
			})
		}), nil
	}
}

// padVolume adds the padding of an input, which an optimizer moved into the convolution.
func (w *window) padVolume(attrs opdef.Attrs) error {
	list := attrs.Ints("padding_list")
	if len(list) == 0 {
		return nil
	}
	if w.padding == paddingSame {
		return status.InvalidArgumentf("padding_list requires VALID padding")
	}
	w.padding, w.explicit = paddingExplicit, list
	return w.checkPadding()
}

func newFusedVolume[T simd.Float, E tensor.Elem](e biasEngine[T, E]) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		w, err := newVolumeWindow(c.Attrs)
		if err != nil {
			return nil, err
		}
		if err := w.padVolume(c.Attrs); err != nil {
			return nil, err
		}
		steps, err := newBiasSteps(c)
		if err != nil {
			return nil, err
		}
		engine := floatVolume[T]()
		return kernel.Func(func(ctx *kernel.Context) error {
			v, out, err := w.volumeOutput(ctx)
			if err != nil {
				return err
			}
			if err := checkBiasVector(ctx, v.outC); err != nil || out.NumElements() == 0 {
				return err
			}
			return mapLast(w.axes, out, ctx.Input(0), func(y, x []E) {
				z, done := e.output(y)
				engine.forward(&v, z, e.wide(x), e.wide(tensor.Values[E](ctx.Input(1))))
				finishBias(&steps, z, e.wide(tensor.Values[E](ctx.Input(2))))
				done()
			})
		}), nil
	}
}

func fusedVolumeShape(c *opdef.ShapeContext) error {
	if len(c.Attrs.Ints("padding_list")) == 0 {
		return conv3DShape(c)
	}
	in, filter, err := convInputs(c, 5)
	if err != nil {
		return err
	}
	w, err := newVolumeWindow(c.Attrs)
	if err != nil {
		return err
	}
	if err := w.padVolume(c.Attrs); err != nil {
		return err
	}
	return w.setOutput(c, in, filter, filter.Dim(4))
}
