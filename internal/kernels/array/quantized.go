package array

import (
	"math"
	"slices"

	"github.com/weft-ml/weft/internal/opkit/intarg"
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
			Name: "QuantizedReshape", Doc: "Reshapes a quantized tensor.",
			In:    []string{"tensor: T", "shape: Tshape", "input_min: float32", "input_max: float32"},
			Out:   []string{"output: T", "output_min: float32", "output_max: float32"},
			Attrs: []string{"T: type", "Tshape: {int32, int64} = int32"}, Shape: quantize.Shape(reshapeShape, 2),
		},
		Kernels: kernel.ForTypes("T", kernel.Stateless(quantizedReshape), tensor.QUint8, tensor.QInt32),
	})
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "QuantizedConcat",
			Doc: "Concatenates quantized tensors. The range of the result includes the ranges of all " +
				"inputs.",
			In:    []string{"concat_dim: int32", "values: N * T", "input_mins: N * float32", "input_maxes: N * float32"},
			Out:   []string{"output: T", "output_min: float32", "output_max: float32"},
			Attrs: []string{"N: int >= 2", "T: type"}, Shape: quantizedConcatShape,
		},
		Kernels: kernel.ByType("T", kernel.Table{
			tensor.QUint8: kernel.Stateless(quantizedConcat[tensor.QUint8Elem](quantize.Uint8)),
			tensor.QInt32: kernel.Stateless(quantizedConcat[tensor.QInt32Elem](quantize.Int32)),
		}),
	})
}

func quantizedReshape(ctx *kernel.Context) error {
	if err := reshape(ctx); err != nil {
		return err
	}
	var limits [2]float32
	for i, name := range []string{"input_min", "input_max"} {
		t := ctx.Input(2 + i)
		if t.Rank() > 1 || t.NumElements() != 1 {
			return status.InvalidArgumentf("%s must be a scalar or a vector of 1 element", name)
		}
		limits[i] = tensor.Values[float32](t)[0]
	}
	quantize.SetRange(ctx, 1, quantize.Range{Min: limits[0], Max: limits[1]})
	return nil
}

func quantizedConcatShape(c *opdef.ShapeContext) error {
	n := (len(c.In) - 1) / 3
	return quantize.Shape(func(c *opdef.ShapeContext) error { return concatShape(c, 1, 1+n, 0) }, 1+n)(c)
}

func quantizedConcat[T tensor.QUint8Elem | tensor.QInt32Elem](of quantize.IntType) kernel.Func {
	return func(ctx *kernel.Context) error {
		n := (ctx.NumInputs() - 1) / 3
		at := ctx.Input(0)
		if at.Rank() != 0 {
			return status.InvalidArgumentf("Concat dim tensor should be a scalar integer, but got shape %v", at.Shape())
		}
		ins := inputs(ctx, 1, 1+n)
		axis := intarg.Scalar(at)
		if axis < 0 || axis >= int64(ins[0].Rank()) {
			return status.InvalidArgumentf("ConcatOp : Expected concatenating dimensions in the range [0, %d), but got %d", ins[0].Rank(), axis)
		}
		from, to, err := concatRanges(ctx, n, of)
		if err != nil {
			return err
		}
		shape := slices.Clone(ins[0].Shape())
		shape[axis] = 0
		for i, in := range ins {
			if in.Rank() != len(shape) {
				return status.InvalidArgumentf("ConcatOp : Ranks of all input tensors should match: shape[0] = %v vs. shape[%d] = %v", ins[0].Shape(), i, in.Shape())
			}
			for j, d := range in.Shape() {
				if int64(j) != axis && d != shape[j] {
					return status.InvalidArgumentf("ConcatOp : Dimensions of inputs should match: shape[0] = %v vs. shape[%d] = %v", ins[0].Shape(), i, in.Shape())
				}
			}
			shape[axis] += in.Shape()[axis]
		}
		out, err := ctx.Allocate(0, shape)
		if err != nil {
			return err
		}
		parts := membudget.Make[*tensor.Tensor](n)
		for i, in := range ins {
			if parts[i] = in; from[i] == to {
				continue
			}
			moved, err := tensor.Alloc(in.DType(), in.Shape())
			if err != nil {
				return err
			}
			defer moved.Release()
			z, decode, encode := tensor.Values[T](&moved), of.Decoder(from[i]), of.Encoder(to)
			for k, q := range tensor.Values[T](in) {
				z[k] = T(encode(decode(int64(q))))
			}
			parts[i] = &moved
		}
		joinInto(out, parts, int(axis))
		quantize.SetRange(ctx, 1, to)
		return nil
	}
}

// concatRanges returns the ranges of the inputs and of the result. The result's range includes 0
// and, for signed integers, is symmetric.
func concatRanges(ctx *kernel.Context, n int, of quantize.IntType) (from []quantize.Range, to quantize.Range, err error) {
	to.Max = -math.MaxFloat32
	for i := range n {
		lo, hi := ctx.Input(1+n+i), ctx.Input(1+2*n+i)
		for _, t := range []struct {
			name string
			t    *tensor.Tensor
		}{{"input_mins", lo}, {"input_maxes", hi}} {
			if count := t.t.NumElements(); count != 1 {
				return nil, to, status.InvalidArgumentf("%s each tensor's num elements must be 1, given num elements %d in index %d", t.name, count, i)
			}
		}
		r := quantize.Range{Min: tensor.Values[float32](lo)[0], Max: tensor.Values[float32](hi)[0]}
		from = membudget.Append(from, r)
		to.Min, to.Max = min(to.Min, r.Min), max(to.Max, r.Max)
	}
	if of.First < 0 {
		to.Max = max(-to.Min, to.Max)
		to.Min = -to.Max
	}
	return from, to, nil
}
