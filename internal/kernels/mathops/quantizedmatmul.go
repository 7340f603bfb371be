package mathops

import (
	"github.com/weft-ml/weft/internal/numeric/gemm"
	"github.com/weft-ml/weft/internal/opkit/quantize"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

const quantizedTypes = "{qint8, quint8, qint32, qint16, quint16}"

func init() {
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "QuantizedMatMul", Doc: "Multiplies two quantized matrices.",
			In:  []string{"a: T1", "b: T2", "min_a: float32", "max_a: float32", "min_b: float32", "max_b: float32"},
			Out: []string{"out: Toutput", "min_out: float32", "max_out: float32"},
			Attrs: []string{"T1: " + quantizedTypes, "T2: " + quantizedTypes, "Toutput: " + quantizedTypes + " = qint32", "transpose_a: bool = false",
				"transpose_b: bool = false", "Tactivation: " + quantizedTypes + " = quint8"},
			Shape: quantize.Shape(matMulShape, 2),
		},
		Kernels: []kernel.Impl{{
			Types: []kernel.Constraint{kernel.OfType("T1", tensor.QUint8), kernel.OfType("T2", tensor.QUint8), kernel.OfType("Toutput", tensor.QInt32)}, New: newQuantizedMatMul,
		}},
	})
}

func newQuantizedMatMul(c *kernel.Construction) (kernel.Kernel, error) {
	ta, tb := c.Attrs.Bool("transpose_a"), c.Attrs.Bool("transpose_b")
	return kernel.Func(func(ctx *kernel.Context) error {
		var limits [4]float32
		for i, name := range []string{"min_a", "max_a", "min_b", "max_b"} {
			t := ctx.Input(2 + i)
			if t.NumElements() != 1 || i == 0 && t.Rank() != 0 {
				return status.InvalidArgumentf("%s must be a scalar, but got shape%v", name, t.Shape())
			}
			limits[i] = tensor.Values[float32](t)[0]
		}
		ra, rb := quantize.Range{Min: limits[0], Max: limits[1]}, quantize.Range{Min: limits[2], Max: limits[3]}
		a, b := ctx.Input(0), ctx.Input(1)
		switch {
		case !(ra.Max > ra.Min):
			return status.InvalidArgumentf("max_a must be larger than min_a.")
		case !(rb.Max > rb.Min):
			return status.InvalidArgumentf("max_b must be larger than min_b.")
		case a.Rank() != 2:
			return status.InvalidArgumentf("In[0] is not a matrix")
		case b.Rank() != 2:
			return status.InvalidArgumentf("In[1] is not a matrix")
		}
		x := matrix(fromZero(a, ra), a.Dim(0), a.Dim(1), ta)
		y := matrix(fromZero(b, rb), b.Dim(0), b.Dim(1), tb)
		if x.Cols != y.Rows {
			return status.InvalidArgumentf("Matrix size-incompatible: In[0]: %v, In[1]: %v", a.Shape(), b.Shape())
		}
		out, err := ctx.Allocate(0, tensor.Shape{int64(x.Rows), int64(y.Cols)})
		if err != nil {
			return err
		}
		sums, err := out.WithDType(tensor.Int32)
		if err != nil {
			return err
		}
		quantize.SetRange(ctx, 1, quantize.Product(quantize.Uint8, ra, quantize.Uint8, rb))
		if sums.NumElements() == 0 {
			return nil // there is any number of rows without columns
		}
		return inPieces(ctx.Context(), anyProduct[int32], gemm.Dense(tensor.Values[int32](&sums), x.Rows, y.Cols), x, y)
	}), nil
}

// fromZero returns the integers minus the integer that represents 0.
func fromZero(t *tensor.Tensor, r quantize.Range) []int32 {
	zero, q := int32(quantize.Uint8.Unclamped(0, r)), tensor.Values[tensor.QUint8Elem](t)
	out := membudget.Make[int32](len(q))
	for i, v := range q {
		out[i] = int32(v) - zero
	}
	return out
}
