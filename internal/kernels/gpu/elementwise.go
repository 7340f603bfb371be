package gpu

import (
	"github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/internal/gpu/source"
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// unaries are operations of one operand by their kernels.
var unaries = map[string]string{
	"Abs": "abs", "Acos": "acos", "Acosh": "acosh", "Asin": "asin", "Asinh": "asinh", "Atan": "atan", "Atanh": "atanh",
	"BesselI0": "besseli0", "BesselI0e": "besseli0e", "BesselI1": "besseli1", "BesselI1e": "besseli1e", "BesselK0": "besselk0",
	"BesselK0e": "besselk0e", "BesselK1": "besselk1", "BesselK1e": "besselk1e", "Ceil": "ceil", "Dawsn": "dawsn", "Digamma": "digamma",
	"Erfinv": "erfinv", "Expint": "expint", "Ndtri": "ndtri",
	"Conj": "conj", "Cos": "cos", "Cosh": "cosh", "Elu": "elu", "Erf": "erf", "Erfc": "erfc", "Exp": "exp", "Expm1": "expm1",
	"Floor": "floor", "Inv": "inv", "Invert": "invert", "IsFinite": "isfinite", "IsInf": "isinf", "IsNan": "isnan", "Lgamma": "lgamma",
	"Log": "log", "Log1p": "log1p", "Neg": "neg", "PopulationCount": "popcount", "Reciprocal": "inv", "Relu": "relu", "Relu6": "relu6",
	"Rint": "rint", "Round": "rint", "Rsqrt": "rsqrt", "Selu": "selu", "Sigmoid": "sigmoid", "Sign": "sign", "Sin": "sin", "Sinh": "sinh",
	"Softplus": "softplus", "Softsign": "softsign", "Sqrt": "sqrt", "Square": "square", "Tan": "tan", "Tanh": "tanh",
}

// binaries are operations of two operands with broadcasting by their kernels.
var binaries = map[string]string{
	"Add": "add", "AddV2": "add", "Atan2": "atan2", "BitwiseAnd": "and", "BitwiseOr": "or", "BitwiseXor": "xor", "Div": "div",
	"DivNoNan": "divnonan", "FloorDiv": "floordiv", "FloorMod": "floormod", "Greater": "greater", "GreaterEqual": "greaterequal",
	"LeftShift": "leftshift", "Less": "less", "LessEqual": "lessequal", "Maximum": "max", "Minimum": "min", "Mod": "mod", "Mul": "mul",
	"MulNoNan": "mulnonan", "NextAfter": "nextafter", "Polygamma": "polygamma", "Pow": "pow", "RealDiv": "div", "RightShift": "rightshift",
	"SquaredDifference": "squareddifference", "Sub": "sub", "TruncateDiv": "truncatediv", "TruncateMod": "mod", "Xdivy": "xdivy",
	"Xlog1py": "xlog1py", "Xlogy": "xlogy", "Zeta": "zeta",
}

// gradients are operations of two operands of one shape by their kernels.
var gradients = map[string]string{
	"EluGrad": "elugrad", "InvGrad": "invgrad", "ReciprocalGrad": "invgrad", "ReluGrad": "relugrad", "Relu6Grad": "relu6grad",
	"RsqrtGrad": "rsqrtgrad", "SeluGrad": "selugrad", "SigmoidGrad": "sigmoidgrad", "SoftplusGrad": "softplusgrad",
	"SoftsignGrad": "softsigngrad", "SqrtGrad": "sqrtgrad", "TanhGrad": "tanhgrad",
}

func init() {
	for op, name := range unaries {
		registerNew(op, typed(func(suffix string) compute { return unary(name + "_" + suffix) }), withKernel("T", name))
	}
	registerNew("Relu", func(*kernel.Construction) (compute, error) { return reluByFours, nil }, kernel.OfType("T", tensor.QInt8))
	registerOp("LogicalNot", unary("not_b8"))
	for op, name := range binaries {
		registerNew(op, typed(func(suffix string) compute { return binary(name + "_" + suffix) }), withKernel("T", name))
	}
	registerOp("LogicalAnd", binary("logicaland_b8"))
	registerOp("LogicalOr", binary("logicalor_b8"))
	for op, name := range map[string]string{"Equal": "equal", "NotEqual": "notequal"} {
		registerNew(op, func(c *kernel.Construction) (compute, error) {
			f := binary(name + "_" + source.TypeName(c.Attrs.Type("T")))
			return func(ctx *kernel.Context, d *device.Device) error {
				if !c.Attrs.Bool("incompatible_shape_error") {
					if _, err := elementwise.Broadcast(ctx.Input(0).Shape(), ctx.Input(1).Shape()); err != nil {
						return errDetour // the result is one boolean
					}
				}
				return f(ctx, d)
			}, nil
		}, withKernel("T", name))
	}
	for op, name := range gradients {
		registerNew(op, typed(func(suffix string) compute { return pair(name + "_" + suffix) }), withKernel("T", name))
	}
	registerNew("LeakyRelu", func(c *kernel.Construction) (compute, error) {
		return unary("leaky_"+source.TypeName(c.Attrs.Type("T")), c.Attrs.Float("alpha")), nil
	}, withKernel("T", "leaky"))
	registerNew("LeakyReluGrad", func(c *kernel.Construction) (compute, error) {
		return pair("leakygrad_"+source.TypeName(c.Attrs.Type("T")), c.Attrs.Float("alpha")), nil
	}, withKernel("T", "leakygrad"))
	for op, name := range map[string]string{"Real": "real", "Imag": "imag", "ComplexAbs": "abs", "Angle": "angle"} {
		registerNew(op, typed(func(suffix string) compute { return unary(name + "_" + suffix) }),
			kernel.OfType("T", tensor.Complex64, tensor.Complex128))
	}
	for t, name := range map[tensor.DType]string{tensor.Float32: "complex_f32_c64", tensor.Float64: "complex_f64_c128"} {
		registerNew("Complex", func(*kernel.Construction) (compute, error) { return pair(name), nil }, kernel.OfType("T", t))
	}
	registerNew("Cast", newCast)
	registerNew("AddN", typed(addN), withKernel("T", "add"))
	registerNew("ClipByValue", typed(clip), withKernel("T", "clip"))
	registerOp("SelectV2", selectV2)
	registerOp("Select", selectRows)
}

// typed returns a constructor for the suffix of the type in attribute T.
func typed(f func(suffix string) compute) func(*kernel.Construction) (compute, error) {
	return func(c *kernel.Construction) (compute, error) {
		suffix := source.TypeName(c.Attrs.Type("T"))
		if suffix == "" {
			return nil, errDetour
		}
		return f(suffix), nil
	}
}

// unary computes a function of each element. more follow the number of elements.
func unary(name string, more ...any) compute {
	return func(ctx *kernel.Context, d *device.Device) error {
		x := *ctx.Input(0)
		out, err := ctx.Forward(0, 0)
		if err != nil {
			return err
		}
		n := int64(x.NumElements())
		return launch(d, name, n, append([]any{out, &x, n}, more...)...)
	}
}

// reluByFours is Relu of qint8, whose elements TensorFlow computes four at a time.
func reluByFours(ctx *kernel.Context, d *device.Device) error {
	if n := ctx.Input(0).NumElements(); n%4 != 0 {
		return status.InvalidArgumentf("Tensor size must be a multiple of 4 for Relu<qint8>. Got %d", n)
	}
	return unary("relu_i8")(ctx, d)
}

// pair computes a function of elements of two tensors of one shape.
func pair(name string, more ...any) compute {
	flat := source.Find(name + "_b") // this form has strides
	return func(ctx *kernel.Context, d *device.Device) error {
		x, y := *ctx.Input(0), *ctx.Input(1)
		if !x.Shape().Equal(y.Shape()) {
			return errDetour
		}
		out, err := ctx.ForwardAny(0, x.Shape(), 0, 1)
		if err != nil {
			return err
		}
		n := int64(x.NumElements())
		args := append([]any{out, &x, &y, n}, more...)
		if flat != nil {
			args = append(args, int32(1), int32(1))
		}
		return launch(d, name, n, args...)
	}
}

// binary computes a function of elements of two tensors, with broadcasting.
func binary(name string) compute {
	return func(ctx *kernel.Context, d *device.Device) error {
		x, y := *ctx.Input(0), *ctx.Input(1)
		shape := x.Shape()
		if !shape.Equal(y.Shape()) {
			var err error
			if shape, err = elementwise.Broadcast(x.Shape(), y.Shape()); err != nil {
				return err
			}
		}
		n := shape.NumElements()
		sx, sy := int32(1), int32(1)
		flat := n == int64(x.NumElements()) && n == int64(y.NumElements())
		switch {
		case flat:
		case x.NumElements() == 1:
			sx, flat = 0, true
		case y.NumElements() == 1:
			sy, flat = 0, true
		}
		var l source.Loop
		if !flat {
			var ok bool
			if l, ok = broadcastLoop(shape, x.Shape(), y.Shape()); !ok {
				return errDetour
			}
		}
		out, err := ctx.ForwardAny(0, shape, 0, 1)
		if err != nil {
			return err
		}
		if flat {
			return launch(d, name, n, out, &x, &y, n, sx, sy)
		}
		return launch(d, name+"_b", n, out, &x, &y, n, l.Arg())
	}
}

func newCast(c *kernel.Construction) (compute, error) {
	src, dst := c.Attrs.Type("SrcT"), c.Attrs.Type("DstT")
	if src == dst {
		return func(ctx *kernel.Context, _ *device.Device) error { return ctx.PassInput(0, 0) }, nil
	}
	name := "cast_" + source.TypeName(src) + "_" + source.TypeName(dst)
	if c.Attrs.Bool("Truncate") && src == tensor.Float32 && dst == tensor.BFloat16 {
		name = "truncate_f32"
	}
	if source.Find(name) == nil {
		return nil, errDetour
	}
	return func(ctx *kernel.Context, d *device.Device) error {
		in := ctx.Input(0)
		out, err := ctx.AllocateLike(0, in)
		if err != nil {
			return err
		}
		n := int64(in.NumElements())
		return launch(d, name, n, out, in, n)
	}, nil
}

// addN adds its inputs in their order.
func addN(suffix string) compute {
	return func(ctx *kernel.Context, d *device.Device) error {
		first := *ctx.Input(0)
		for i := range ctx.NumInputs() {
			if !ctx.Input(i).Shape().Equal(first.Shape()) {
				return errDetour
			}
		}
		if ctx.NumInputs() == 1 {
			return ctx.PassInput(0, 0)
		}
		if suffix == "f16" || suffix == "bf16" {
			if ctx.NumInputs() > 2 {
				return errDetour // the CPU rounds the whole sum once
			}
		}
		out, err := ctx.Forward(0, 0)
		if err != nil {
			return err
		}
		n, sum := int64(first.NumElements()), &first
		for i := 1; i < ctx.NumInputs(); i++ {
			if err := launch(d, "add_"+suffix, n, out, sum, ctx.Input(i), n, int32(1), int32(1)); err != nil {
				return err
			}
			sum = out
		}
		return nil
	}
}

func clip(suffix string) compute {
	return func(ctx *kernel.Context, d *device.Device) error {
		x := *ctx.Input(0)
		strides := [2]int32{}
		for i := range strides {
			switch bound := ctx.Input(1 + i); {
			case bound.Rank() == 0:
			case bound.Shape().Equal(x.Shape()):
				strides[i] = 1
			default:
				return errDetour
			}
		}
		out, err := ctx.Forward(0, 0)
		if err != nil {
			return err
		}
		n := int64(x.NumElements())
		return launch(d, "clip_"+suffix, n, out, &x, ctx.Input(1), ctx.Input(2), n, strides[0], strides[1])
	}
}

// selectV2 selects by a condition, with broadcasting of all three inputs.
func selectV2(ctx *kernel.Context, d *device.Device) error {
	c, x, y := ctx.Input(0), ctx.Input(1), ctx.Input(2)
	shape, err := elementwise.Broadcast(x.Shape(), y.Shape())
	if err == nil {
		shape, err = elementwise.Broadcast(c.Shape(), shape)
	}
	if err != nil {
		return errDetour
	}
	l, ok := broadcastLoop(shape, c.Shape(), x.Shape(), y.Shape())
	name := source.SizeName(x.DType().Size())
	if !ok || name == "" {
		return errDetour
	}
	out, err := ctx.Allocate(0, shape)
	if err != nil {
		return err
	}
	n := shape.NumElements()
	return launch(d, "select_"+name+"_b", n, out, c, x, y, n, l.Arg())
}

// selectRows selects by a condition that has the shape of the operands, or is a scalar or a vector
// that selects rows.
func selectRows(ctx *kernel.Context, d *device.Device) error {
	c, x, y := ctx.Input(0), ctx.Input(1), ctx.Input(2)
	name := source.SizeName(x.DType().Size())
	row, stride := int64(1), int32(1)
	switch {
	case !x.Shape().Equal(y.Shape()) || name == "":
		return errDetour
	case c.Shape().Equal(x.Shape()):
	case c.Rank() == 0:
		stride = 0
	case c.Rank() == 1 && x.Rank() > 0 && c.Dim(0) == x.Dim(0):
		row = max(1, x.Shape()[1:].NumElements())
	default:
		return errDetour
	}
	out, err := ctx.AllocateLike(0, x)
	if err != nil {
		return err
	}
	n := int64(x.NumElements())
	return launch(d, "select_"+name, n, out, c, x, y, n, row, stride, int32(1), int32(1))
}
