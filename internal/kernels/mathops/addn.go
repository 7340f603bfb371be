package mathops

import (
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
		Kernels: byT(elementwise.Union(addNs(), kernel.Table{tensor.Variant: kernel.Stateless(addVariants)})),
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
		Kernels: byT(addNs()),
	})
}

// addNShape merges the shapes of the inputs from last to first.
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

func addNs() kernel.Table {
	return kernel.Table{
		tensor.Float32: kernel.Stateless(addN[float32]), tensor.Float64: kernel.Stateless(addN[float64]),
		tensor.Float16: kernel.Stateless(addN[tensor.Float16Elem]), tensor.BFloat16: kernel.Stateless(addN[tensor.BFloat16Elem]),
		tensor.Int8: kernel.Stateless(addN[int8]), tensor.Int16: kernel.Stateless(addN[int16]),
		tensor.Int32: kernel.Stateless(addN[int32]), tensor.Int64: kernel.Stateless(addN[int64]),
		tensor.Uint8: kernel.Stateless(addN[uint8]), tensor.Uint16: kernel.Stateless(addN[uint16]),
		tensor.Uint32: kernel.Stateless(addN[uint32]), tensor.Uint64: kernel.Stateless(addN[uint64]),
		tensor.Complex64: kernel.Stateless(addN[complex64]), tensor.Complex128: kernel.Stateless(addN[complex128]),
	}
}

// addBlock is the number of elements that are summed over all inputs before the next block. The
// sums of a block fit in the L1 cache.
const addBlock = 4096

func addN[T tensor.Elem](ctx *kernel.Context) error {
	first := ctx.Input(0)
	all := membudget.Make[[]T](ctx.NumInputs())
	for i := range all {
		t := ctx.Input(i)
		if !t.Shape().Equal(first.Shape()) {
			return status.InvalidArgumentf("Inputs to operation %s of type AddN must have the same size and shape.  "+
				"Input 0: %v != input %d: %v", ctx.Node, first.Shape(), i, t.Shape())
		}
		all[i] = tensor.Values[T](t)
	}
	if len(all) == 1 {
		return ctx.PassInput(0, 0)
	}
	out, err := ctx.Forward(0, 0)
	if err != nil {
		return err
	}
	z, add, add4 := tensor.Values[T](out), elementwise.Arithmetic[T](elementwise.Add), addFour[T]()
	parallel.For(len(z), max(addBlock, elementwise.Grain(cheap)/len(all)), func(lo, hi int) {
		for ; lo < hi; lo += addBlock {
			addRange(z, all, lo, min(lo+addBlock, hi), add, add4)
		}
	})
	return nil
}

// addRange sums elements lo to hi of at least two inputs in order. z may alias the first input.
// add4 may be nil.
func addRange[T tensor.Elem](z []T, all [][]T, lo, hi int, add func(z, x, y []T), add4 func(z, a, b, c, d []T)) {
	sum, so := z[lo:hi], all[0][lo:hi]
	for all = all[1:]; len(all) > 0; so = sum {
		if add4 != nil && len(all) >= 3 {
			add4(sum, so, all[0][lo:hi], all[1][lo:hi], all[2][lo:hi])
			all = all[3:]
			continue
		}
		add(sum, so, all[0][lo:hi])
		all = all[1:]
	}
}

// addFour returns the loop that adds four slices at once, or nil for types without vector code.
func addFour[T tensor.Elem]() func(z, a, b, c, d []T) {
	var loop any
	switch any(*new(T)).(type) {
	case float32:
		loop = simd.Add4[float32]
	case float64:
		loop = simd.Add4[float64]
	}
	f, _ := loop.(func(z, a, b, c, d []T))
	return f
}

// adder is implemented by variant values that can be added, such as tensor lists.
type adder interface {
	AddVariant(other any) (any, error)
}

// addVariants sums scalar variants whose values implement adder.
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
