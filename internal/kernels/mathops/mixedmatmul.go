package mathops

import (
	"github.com/weft-ml/weft/internal/numeric/gemm"
	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "BatchMatMulV3", Doc: "Computes BatchMatMulV2 for inputs and an output of different types.",
			In:  []string{"x: Ta", "y: Tb"},
			Out: []string{"output: Tout"},
			Attrs: []string{
				"Ta: {bfloat16, float16, float32, float64, uint8, int8, int16, int32, int64, complex64, complex128}",
				"Tb: {bfloat16, float16, float32, float64, uint8, int8, int16, int32, int64, complex64, complex128}",
				"Tout: {bfloat16, float16, float32, float64, int16, int32, int64, complex64, complex128}",
				"adj_x: bool = false",
				"adj_y: bool = false",
				"grad_x: bool = false",
				"grad_y: bool = false",
			},
			Shape: batchMatMulV2Shape,
		},
		Kernels: []kernel.Impl{
			uniform(tensor.Float32, product[float32]),
			uniform(tensor.Float64, product[float64]),
			uniform(tensor.BFloat16, bfloatProduct),
			uniform(tensor.Int16, anyProduct[int16]),
			uniform(tensor.Int32, anyProduct[int32]),
			uniform(tensor.Int64, anyProduct[int64]),
			uniform(tensor.Complex64, anyProduct[complex64]),
			uniform(tensor.Complex128, anyProduct[complex128]),
			mixed(bfloat, octets, tensor.BFloat16, bfloatProduct),
			mixed(octets, bfloat, tensor.BFloat16, bfloatProduct),
			mixed(octets, octets, tensor.Int32, anyProduct[int32]),
		},
	})
	kernel.RegisterNew(opdef.Def{
		Name: "SparseMatMul", Doc: "Multiplies matrices of float32 or bfloat16, which may have many zeros, to float32.",
		In:  []string{"a: Ta", "b: Tb"},
		Out: []string{"product: float32"},
		Attrs: []string{
			"transpose_a: bool = false",
			"transpose_b: bool = false",
			"a_is_sparse: bool = false",
			"b_is_sparse: bool = false",
			"Ta: {float32, bfloat16} = float32",
			"Tb: {float32, bfloat16} = float32",
		},
		Shape: matMulShape,
	}, newSparseMatMul)
}

var (
	bfloat = []tensor.DType{tensor.BFloat16}
	octets = []tensor.DType{tensor.Uint8, tensor.Int8}
)

// uniform returns the kernel for inputs and an output of one type, and mixed returns those for
// several types. Together they cover the combinations of TensorFlow.
func uniform[T tensor.Elem](t tensor.DType, mul multiply[T]) kernel.Impl {
	return mixed([]tensor.DType{t}, []tensor.DType{t}, t, mul)
}

func mixed[T tensor.Elem](x, y []tensor.DType, out tensor.DType, mul multiply[T]) kernel.Impl {
	return kernel.Impl{Types: []kernel.Constraint{kernel.OfType("Ta", x...), kernel.OfType("Tb", y...), kernel.OfType("Tout", out)}, New: newMixedMatMul(mul)}
}

// as returns t converted to another type, with a reference of its own.
func as(t *tensor.Tensor, dtype tensor.DType) (tensor.Tensor, error) {
	if t.DType() == dtype {
		return t.Retain(), nil
	}
	convert := conversion(t.DType(), dtype)
	if convert == nil {
		return tensor.Tensor{}, status.Unimplementedf("Cast %v to %v is not supported", t.DType(), dtype)
	}
	out, err := tensor.AllocShared(dtype, t.Shape())
	if err != nil {
		return out, err
	}
	parallel.For(t.NumElements(), elementwise.Grain(cheap), func(lo, hi int) { convert(&out, t, lo, hi) })
	return out, nil
}

func newMixedMatMul[T tensor.Elem](mul multiply[T]) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		dtype := c.Attrs.Type("Tout")
		k := &batchMatMul[T]{mul: mul, adjX: c.Attrs.Bool("adj_x"), adjY: c.Attrs.Bool("adj_y"), broadcast: true}
		return kernel.Func(func(ctx *kernel.Context) error {
			x, err := as(ctx.Input(0), dtype)
			if err != nil {
				return err
			}
			defer x.Release()
			y, err := as(ctx.Input(1), dtype)
			if err != nil {
				return err
			}
			defer y.Release()
			return k.multiply(ctx, &x, &y)
		}), nil
	}
}

func newSparseMatMul(c *kernel.Construction) (kernel.Kernel, error) {
	ta, tb := c.Attrs.Bool("transpose_a"), c.Attrs.Bool("transpose_b")
	return kernel.Func(func(ctx *kernel.Context) error {
		var in [2]tensor.Tensor
		for i, name := range []string{"a", "b"} {
			if ctx.Input(i).Rank() != 2 {
				return status.InvalidArgumentf("%s is not a matrix", name)
			}
			var err error
			if in[i], err = as(ctx.Input(i), tensor.Float32); err != nil {
				return err
			}
			defer in[i].Release()
		}
		x := matrix(tensor.Values[float32](&in[0]), in[0].Dim(0), in[0].Dim(1), ta)
		y := matrix(tensor.Values[float32](&in[1]), in[1].Dim(0), in[1].Dim(1), tb)
		if x.Cols != y.Rows {
			return status.InvalidArgumentf("Matrix size incompatible: a: %v, b: %v", in[0].Shape(), in[1].Shape())
		}
		out, err := ctx.AllocateZeros(0, tensor.Shape{int64(x.Rows), int64(y.Cols)})
		if err != nil || out.NumElements() == 0 || x.Cols == 0 {
			return err
		}
		gemm.Mul(gemm.Dense(tensor.Values[float32](out), x.Rows, y.Cols), x, y, gemm.Options[float32]{})
		return nil
	}), nil
}
