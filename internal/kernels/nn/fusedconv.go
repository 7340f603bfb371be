package nn

import (
	"math"
	"slices"
	"strings"

	"github.com/weft-ml/weft/internal/numeric/conv"
	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/numeric/simd"
	"github.com/weft-ml/weft/internal/sys/bulk"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "_FusedConv2D",
			Doc:  "Computes Conv2D followed by a BiasAdd, or a FusedBatchNorm with given statistics, and optionally an activation function. Created by graph optimizers.",
			In:   []string{"input: T", "filter: T", "args: TArgs", "host_args: num_host_args * float32"}, Out: []string{"output: T"},
			Attrs: []string{
				"T: {float16, float32, float64, int8, qint8}", "TArgs: list(type) >= 1", "num_args: int >= 0", "num_host_args: int >= 0 = 0",
				"strides: list(int)", anyPadding, explicitAttr, "data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'",
				"filter_format: {'HWIO', 'OIHW', 'OIHW_VECT_I'} = 'HWIO'", "dilations: list(int) = [1, 1, 1, 1]", "use_cudnn_on_gpu: bool = true",
				"fused_ops: list(string) = []", "epsilon: float = 9.999999747378752e-05", "leakyrelu_alpha: float = 0.20000000298023224",
			},
			Shape: conv2DShape,
		},
		Kernels: kernel.ByType("T", kernel.Table{tensor.Float32: newFusedConv[float32], tensor.Float64: newFusedConv[float64]}),
	})
}

// fusedSteps describes the operations that are fused with a convolution.
type fusedSteps struct {
	norm       bool // batch normalization instead of a bias
	activation string
	epsilon    float64
	alpha      float64
}

func newFusedSteps(attrs opdef.Attrs, inputs int) (fusedSteps, error) {
	fused, args := attrs.Strings("fused_ops"), attrs.Int("num_args")
	if len(fused) == 0 {
		return fusedSteps{}, status.InvalidArgumentf("Fused Conv2D must have at least one fused op.")
	}
	if hosted := attrs.Int("num_host_args"); inputs != 2+args+hosted {
		return fusedSteps{}, status.InvalidArgumentf("Fused Conv2D must have the number of inputs equal to 2 + num_args + num_host_args but in fact the number of inputs is %d and num_args is %d and num_host_args is %d",
			inputs, args, hosted)
	}
	s := fusedSteps{norm: fused[0] == "FusedBatchNorm", epsilon: float64(attrs.Float("epsilon")), alpha: float64(attrs.Float("leakyrelu_alpha"))}
	if len(fused) > 1 {
		s.activation = fused[1]
	}
	if !s.norm && fused[0] != "BiasAdd" || len(fused) > 2 || !slices.Contains(activations, s.activation) {
		//sizedmake:ok an attribute, at the construction
		return s, status.Unimplementedf("Fusion is not implemented: [%s]", strings.Join(fused, ","))
	}
	switch {
	case s.norm && args != 4:
		return s, status.InvalidArgumentf("Fused Conv2D with FusedBatchNorm must have four extra arguments: scale, offset, mean, variance.")
	case !s.norm && args != 1:
		return s, status.InvalidArgumentf("Fused Conv2D with BiasAdd must have one extra argument: bias or 4 extra arguments: bias, side_input, conv_input_scale and side_input_scale")
	}
	return s, nil
}

// activations are the functions that optimizers fuse with a convolution.
var activations = []string{"", "Relu", "Relu6", "Elu", "LeakyRelu", "Mish", "_MklSwish"}

// check checks the inputs that hold one element per channel.
func (s *fusedSteps) check(ctx *kernel.Context, channels int) error {
	names := []string{"bias"}
	if s.norm {
		names = []string{"scale", "offset", "estimated_mean", "estimated_variance"}
	}
	for i, name := range names {
		switch in := ctx.Input(2 + i); {
		case in.Rank() != 1:
			return status.InvalidArgumentf("%s must be 1-dimensional%v", name, in.Shape())
		case in.Dim(0) != channels || in.DType() != ctx.Input(0).DType():
			return status.InvalidArgumentf("%s must have %d elements of %v, got %v of %v", name, channels, ctx.Input(0).DType(), in.Shape(), in.DType())
		}
	}
	return nil
}

func newFusedConv[T simd.Float](c *kernel.Construction) (kernel.Kernel, error) {
	w, err := newConvWindow(c.Attrs, status.Unimplemented)
	if err != nil {
		return nil, err
	}
	steps, err := newFusedSteps(c.Attrs, len(c.Inputs))
	if err != nil {
		return nil, err
	}
	return kernel.Func(func(ctx *kernel.Context) error {
		in, filter := ctx.Input(0), ctx.Input(1)
		s, groups, err := w.size(in.Shape(), filter.Shape())
		if err != nil {
			return err
		}
		out, err := ctx.Allocate(0, w.shape(int64(s.Batch), []int64{int64(s.OutH), int64(s.OutW)}, int64(s.OutC)))
		if err != nil || out.NumElements() == 0 {
			return err
		}
		if groups != 1 {
			return status.Unimplementedf("Fused conv implementation does not support grouped convolutions for now.")
		}
		if w.first {
			return status.Unimplementedf("Fused conv implementation only supports NHWC tensor format for now.")
		}
		if err := steps.check(ctx, s.OutC); err != nil {
			return err
		}
		if in.NumElements() == 0 || filter.NumElements() == 0 {
			bulk.Clear(out.Bytes())
			finish(&steps, ctx, tensor.Values[T](out), true)
			return nil
		}
		var e conv.Epilogue[T]
		if !steps.norm {
			e = conv.Epilogue[T]{Bias: tensor.Values[T](ctx.Input(2)), Relu: steps.activation == "Relu"}
		}
		y := tensor.Values[T](out)
		conv.Forward(&s, y, tensor.Values[T](in), tensor.Values[T](filter), e)
		if steps.norm {
			finish(&steps, ctx, y, true)
		} else if steps.activation != "" && !e.Relu {
			finish(&steps, ctx, y, false)
		}
		return nil
	}), nil
}

// finish applies the steps to the rows of y. If adds is false, the bias or normalization has been
// applied already.
func finish[T simd.Float](s *fusedSteps, ctx *kernel.Context, y []T, adds bool) {
	args := make([][]T, 0, 4)
	for i := 2; i < ctx.NumInputs(); i++ {
		args = append(args, tensor.Values[T](ctx.Input(i)))
	}
	var scale []T
	if s.norm {
		scale = membudget.Make[T](len(args[0]))
		for i, v := range args[3] {
			scale[i] = T(1/math.Sqrt(float64(v+T(s.epsilon)))) * args[0][i]
		}
	}
	activate, channels := activation[T](s.activation, s.alpha), len(args[0])
	parallel.For(len(y)/channels, max(1, 10_000/channels), func(lo, hi int) {
		part := y[lo*channels : hi*channels]
		for row := range slices.Chunk(part, channels) {
			switch {
			case s.norm:
				simd.Sub(row, row, args[2])
				simd.Mul(row, row, scale)
				simd.Add(row, row, args[1])
			case adds:
				simd.Add(row, row, args[0])
			}
		}
		activate(part, part)
	})
}

func activation[T simd.Float](name string, alpha float64) func(z, x []T) {
	switch name {
	case "Relu":
		return simd.Relu[T]
	case "Relu6":
		return relu6[T]
	case "Elu":
		return elu[T](1, 1)
	case "LeakyRelu":
		return leaky(T(alpha))
	case "Mish":
		return mish[T]
	case "_MklSwish":
		return swish[T]
	}
	return func([]T, []T) {}
}
