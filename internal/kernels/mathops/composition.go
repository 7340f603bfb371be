package mathops

import (
	"slices"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/internal/sys/stepctx"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "_UnaryOpsComposition",
			Doc:  "Applies the unary operations op_names one after the other. A master of TensorFlow replaces chains of such operations by it.",
			In:   []string{"x: T"}, Out: []string{"y: T"},
			Attrs: []string{"T: {float32, float16, float64}", "op_names: list(string)"}, Shape: opdef.SameShape,
		},
		Kernels: kernel.ForTypes("T", newComposition, tensor.Float32, tensor.Float16, tensor.Float64),
	})
}

// composable are the operations that TensorFlow composes. Their only attribute is T.
var composable = []string{
	"Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Cos", "Cosh", "Elu", "Exp", "Expm1", "Floor", "Inv", "Log",
	"Log1p", "Neg", "Reciprocal", "Relu", "Relu6", "Rint", "Round", "Rsqrt", "Selu", "Sigmoid", "Sin", "Sinh", "Sqrt", "Square", "Tan",
	"Tanh",
}

// partMemory is about the memory of the kernel of one operation, in bytes.
const partMemory = 512

// composition runs kernels with one input and one output, each on the output of the one before.
type composition struct {
	kernels []kernel.Kernel
	types   []tensor.DType
}

func newComposition(c *kernel.Construction) (kernel.Kernel, error) {
	names := c.Attrs.Strings("op_names")
	if len(names) == 0 {
		return nil, status.InvalidArgumentf("op_names must not be empty")
	}
	comp := &composition{types: slices.Clone(c.Outputs)}
	var meter membudget.Meter
	for _, name := range names {
		op, ok := kernel.Default.LookupOp(name)
		if !ok || !slices.Contains(composable, name) {
			return nil, status.InvalidArgumentf("Do not have a compute function registered for op: %s", name)
		}
		meter.MustTake(partMemory)
		part := *c
		part.Op, part.Attrs = op, opdef.Attrs{"T": c.Attrs.Type("T")}
		impl := kernel.Default.Find(name, kernel.CPU, part.Attrs)
		if impl == nil {
			return nil, status.InvalidArgumentf("Do not have a compute function registered for op: %s", name)
		}
		k, err := impl.New(&part)
		if err != nil {
			return nil, err
		}
		comp.kernels = membudget.Append(comp.kernels, k)
	}
	return comp, nil
}

// Compute implements kernel.Kernel.
func (comp *composition) Compute(ctx *kernel.Context) error {
	inner := *ctx
	value := kernel.Value{Tensor: ctx.TakeInput(0)}
	p := stepctx.Progress{Context: ctx.Context(), Each: 64}
	for _, k := range comp.kernels {
		if err := p.Pass(value.Tensor.NumElements()); err != nil {
			value.Tensor.Release()
			return err
		}
		ins, outs := []kernel.Value{value}, make([]kernel.Value, 1)
		inner.Bind(ins, outs, comp.types)
		err := k.Compute(&inner)
		ins[0].Release()
		if err != nil {
			outs[0].Release()
			return err
		}
		value = outs[0]
	}
	ctx.SetOutput(0, value.Tensor)
	return nil
}
