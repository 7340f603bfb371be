package math

import (
	"github.com/weft-ml/weft/internal/dtypes"
	"github.com/weft-ml/weft/internal/elementwise"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "AddN", Doc: "Adds tensors of one shape.",
			In: []string{"inputs: N * T"}, Out: []string{"sum: T"},
			Attrs: []string{
				"N: int >= 1",
				"T: {float32, float64, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, quint16, uint16, complex128, float16, uint32, uint64, variant}",
			},
			Commutative: true, Aggregate: true, Shape: addNShape,
		},
		Kernels: append(kernel.ForTypes("T", kernel.Stateless(addN), dtypes.Numbers...),
			kernel.ForTypes("T", kernel.Stateless(addVariants), tensor.Variant)...),
	})
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "AccumulateNV2", Doc: "Adds tensors of one shape, which is known.",
			In:          []string{"inputs: N * T"},
			Out:         []string{"sum: T"},
			Attrs:       []string{"N: int >= 1", "T: numbertype", "shape: shape"},
			Commutative: true, Aggregate: true,
			Shape: opdef.AttrShape,
		},
		Kernels: kernel.ForTypes("T", kernel.Stateless(addN), dtypes.Numbers...),
	})
}

// addNShape merges the shapes from the last to the first.
func addNShape(c *opdef.ShapeContext) error {
	last := len(c.In) - 1
	sum := c.In[last]
	for i := last - 1; i >= 0; i-- {
		var err error
		if sum, err = opdef.MergeShapes(c.In[i], sum); err != nil {
			return status.InvalidArgumentf("%v\n\tFrom merging shape %d with other shapes.", err, i)
		}
	}
	c.Out[0] = sum
	return nil
}

func addN(ctx *kernel.Context) error {
	first := ctx.Input(0)
	for i := 1; i < ctx.NumInputs(); i++ {
		if t := ctx.Input(i); !t.Shape().Equal(first.Shape()) {
			return status.InvalidArgumentf("Inputs to operation %s of type AddN must have the same size and shape.  "+
				"Input 0: %v != input %d: %v", ctx.Node, first.Shape(), i, t.Shape())
		}
	}
	if ctx.NumInputs() == 1 {
		return ctx.PassInput(0, 0)
	}
	src := *first // a borrowed header: whoever has the elements after Forward, they stay
	out, err := ctx.Forward(0, 0)
	if err != nil {
		return err
	}
	if !out.SharesBuffer(&src) {
		copy(out.Bytes(), src.Bytes())
	}
	for i := 1; i < ctx.NumInputs(); i++ {
		elementwise.Accumulate(elementwise.Add, out, ctx.Input(i))
	}
	return nil
}

// adder is a variant's value that can be added to others, such as a list of tensors.
type adder interface {
	AddVariant(other any) (any, error)
}

// addVariants adds scalars that hold values which can be added.
func addVariants(ctx *kernel.Context) error {
	sum := any(nil)
	for i := range ctx.NumInputs() {
		in := ctx.Input(i)
		if in.NumElements() != 1 {
			return status.InvalidArgumentf("AddN of non-scalar Tensor with dtype=DT_VARIANT is not supported; inputs[%d] has shape: %v.", i, in.Shape())
		}
		v := tensor.Value[tensor.VariantValue](in).Value
		if i == 0 {
			sum = v
			continue
		}
		a, ok := sum.(adder)
		if !ok {
			return status.InvalidArgumentf("No unary variant binary_op function found for op ADD Variant type_name: %T", sum)
		}
		var err error
		if sum, err = a.AddVariant(v); err != nil {
			return err
		}
	}
	ctx.SetOutput(0, tensor.Scalar(tensor.VariantValue{Value: sum}))
	return nil
}
