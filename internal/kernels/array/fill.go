package array

import (
	"slices"
	"unsafe"

	"github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/internal/numeric/simd"
	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/opkit/strided"
	"github.com/weft-ml/weft/internal/opkit/typeset"
	"github.com/weft-ml/weft/internal/sys/bulk"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterFunc(opdef.Def{
		Name: "Fill", Doc: "Returns a tensor of shape dims whose elements all equal value.",
		In:    []string{"dims: index_type", "value: T"},
		Out:   []string{"output: T"},
		Attrs: []string{"T: type", "index_type: {int32, int64} = int32"},
		Shape: fillShape,
	}, fill)
	kernel.RegisterFunc(opdef.Def{
		Name: "ZerosLike", Doc: "Returns a tensor of zeros with the shape of x.",
		In:    []string{"x: T"},
		Out:   []string{"y: T"},
		Attrs: []string{"T: type"},
		Shape: opdef.SameShape,
	}, zerosLike)
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "OnesLike", Doc: "Returns a tensor of ones with the shape of x.",
			In:  []string{"x: T"},
			Out: []string{"y: T"},
			Attrs: []string{
				"T: {bfloat16, float16, float32, float64, int8, uint8, int16, uint16, int32, uint32, int64, uint64, complex64, complex128, bool}",
			},
			Shape: opdef.SameShape,
		},
		Kernels: kernel.ForTypes("T", kernel.Stateless(onesLike), typeset.Plain...),
	})
	kernel.RegisterNew(opdef.Def{
		Name: "Empty", Doc: "Returns a tensor with uninitialized elements, or zeros if init is true.",
		In:       []string{"shape: int32"},
		Out:      []string{"output: dtype"},
		Attrs:    []string{"dtype: type", "init: bool = false"},
		Stateful: true,
		Shape: func(c *opdef.ShapeContext) error {
			s, err := shapefn.Input(c, 0)
			c.SetAll(s)
			return err
		},
	}, newEmpty)
}

func fillShape(c *opdef.ShapeContext) error {
	if err := shapefn.CheckRanks(c, 0, 1, 0); err != nil {
		return err
	}
	dims, _ := shapefn.Ints(c, 0)
	for _, d := range dims {
		if d < 0 {
			return status.InvalidArgumentf("Fill dimensions must be >= 0")
		}
	}
	s, err := shapefn.Input(c, 0)
	c.SetAll(s)
	return err
}

func fill(ctx *kernel.Context) error {
	dims, value := ctx.Input(0), ctx.Input(1)
	if dims.Rank() > 1 {
		return status.InvalidArgumentf("dims must represent a vector, got shape %v", dims.Shape())
	}
	if value.Rank() > 0 && (value.Rank() > 1 || value.NumElements() != 1) {
		return status.InvalidArgumentf("value must represent a scalar, got shape %v", value.Shape())
	}
	shape, err := intarg.Shape(intarg.Values(dims))
	if err != nil {
		return err
	}
	out, err := ctx.Allocate(0, shape)
	if err != nil {
		return err
	}
	splat(out, value)
	return nil
}

// splat sets every element of out to the only element of value. An error of a device is a
// panic, and so an error of the step.
func splat(out, value *tensor.Tensor) {
	if !out.OnDevice() && len(value.Bytes()) > 0 && !slices.ContainsFunc(value.Bytes(), func(b byte) bool { return b != 0 }) {
		clearAll(out)
		return
	}
	strided.Splat(out, value)
}

// zeroer is implemented by variant values that have a zero, such as tensor lists.
type zeroer interface{ ZerosLike() (any, error) }

func zerosLike(ctx *kernel.Context) error {
	in := ctx.Input(0)
	if in.DType() == tensor.Variant {
		return variantZero(ctx, in)
	}
	out, err := ctx.Forward(0, 0)
	if err != nil {
		return err
	}
	clearAll(out)
	return nil
}

func variantZero(ctx *kernel.Context, in *tensor.Tensor) error {
	if in.Rank() != 0 {
		return status.InvalidArgumentf("ZerosLike non-scalar Tensor with dtype=DT_VARIANT is not supported.")
	}
	v := tensor.Value[tensor.VariantValue](in)
	z, ok := v.Value.(zeroer)
	if !ok {
		return status.InvalidArgumentf("No unary variant unary_op function found for op ZEROS_LIKE Variant type_name: %T", v.Value)
	}
	zero, err := z.ZerosLike()
	if err != nil {
		return err
	}
	ctx.SetOutput(0, tensor.Scalar(tensor.VariantValue{Value: zero}))
	return nil
}

func onesLike(ctx *kernel.Context) error {
	out, err := ctx.Forward(0, 0)
	if err != nil {
		return err
	}
	unit, err := one(out.DType())
	if err != nil {
		return err
	}
	splat(out, &unit)
	return nil
}

// one returns the scalar 1 of a numeric type, or true for bool.
func one(dtype tensor.DType) (tensor.Tensor, error) {
	switch dtype {
	case tensor.Bool:
		return tensor.Scalar(true), nil
	case tensor.Float16:
		return tensor.Scalar(tensor.Float16Of(1)), nil
	case tensor.BFloat16:
		return tensor.Scalar(tensor.BFloat16Of(1)), nil
	case tensor.Float32:
		return tensor.Scalar[float32](1), nil
	case tensor.Float64:
		return tensor.Scalar[float64](1), nil
	case tensor.Complex64:
		return tensor.Scalar[complex64](1), nil
	case tensor.Complex128:
		return tensor.Scalar[complex128](1), nil
	}
	t, err := tensor.Zeros(dtype, nil)
	if err == nil {
		t.Bytes()[0] = 1 // little-endian integers
	}
	return t, err
}

func newEmpty(c *kernel.Construction) (kernel.Kernel, error) {
	zero := c.Attrs.Bool("init")
	return kernel.Func(func(ctx *kernel.Context) error {
		dims := ctx.Input(0)
		if dims.Rank() != 1 {
			return status.InvalidArgumentf("shape must be a vector of int32, got shape %v", dims.Shape())
		}
		shape, err := intarg.Shape(intarg.Values(dims))
		if err != nil {
			return err
		}
		out, err := ctx.Allocate(0, shape)
		if err == nil && zero {
			if out.OnDevice() {
				clearAll(out)
			} else {
				bulk.Clear(out.Bytes())
			}
		}
		return err
	}), nil
}

// clearAll zeroes the memory of a tensor of plain elements. An error of a device is a panic, and so
// an error of the step.
func clearAll(t *tensor.Tensor) {
	if d := device.Of(t); d != nil {
		if err := d.Fill(t, 0); err != nil {
			panic(err)
		}
		return
	}
	mem := t.Bytes()
	if words := unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(mem))), len(mem)/8); len(words) > 0 {
		simd.Fill(words, 0)
		mem = mem[8*len(words):]
	}
	clear(mem)
}
