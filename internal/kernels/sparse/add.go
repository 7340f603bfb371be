package sparse

import (
	"math"
	"slices"

	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

const numbers = "T: {float32, float64, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, quint16, uint16, complex128, float16, uint32, uint64}"

func init() {
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "SparseAdd",
			Doc:  "Adds sparse tensors. Sums smaller than the threshold in magnitude are omitted.",
			In:   []string{"a_indices: int64", "a_values: T", "a_shape: int64", "b_indices: int64", "b_values: T", "b_shape: int64", "thresh: Treal"},
			Out:  []string{"sum_indices: int64", "sum_values: T", "sum_shape: int64"},
			Attrs: []string{numbers,
				"Treal: {float32, float64, int32, uint8, int16, int8, int64, bfloat16, uint16, float16, uint32, uint64}"},
			Shape: func(c *opdef.ShapeContext) error {
				s, err := opdef.WithRank(c.In[2], 1)
				c.Out[0], c.Out[1], c.Out[2] = shapefn.Of(shapefn.Unknown, s.Dim(0)), shapefn.Of(shapefn.Unknown), s
				return err
			},
		},
		Kernels: kernel.ByType("T", kernel.Table{
			tensor.Float32: add(realSize[float32], realSize[float32]), tensor.Float64: add(realSize[float64], realSize[float64]),
			tensor.Int8: add(realSize[int8], realSize[int8]), tensor.Int16: add(realSize[int16], realSize[int16]),
			tensor.Int32: add(intSize[int32], realSize[int32]), tensor.Int64: add(intSize[int64], realSize[int64]),
			tensor.Complex64:  add(func(v complex64) float64 { return math.Hypot(float64(real(v)), float64(imag(v))) }, signed[float32]),
			tensor.Complex128: add(func(v complex128) float64 { return math.Hypot(real(v), imag(v)) }, signed[float64]),
		}),
	})
}

func realSize[T elementwise.Real](v T) float64 { return math.Abs(float64(v)) }

// intSize returns the absolute value in type T, where that of the smallest integer is negative.
func intSize[T int32 | int64](v T) float64 { return float64(max(v, -v)) }

func signed[T elementwise.Real](v T) float64 { return float64(v) }

// side is one operand of an addition.
type side struct{ indices, values, shape *tensor.Tensor }

func checkAdd(a, b side, thresh *tensor.Tensor) error {
	switch n, m := a.indices, b.indices; {
	case n.Rank() != 2 || m.Rank() != 2:
		return status.InvalidArgumentf("Input indices should be matrices but received shapes: %v and %v", n.Shape(), m.Shape())
	case n.Dim(1) != m.Dim(1):
		return status.InvalidArgumentf("Input indices must have the same dimension, got %d and %d", n.Dim(1), m.Dim(1))
	case a.values.Rank() != 1 || b.values.Rank() != 1:
		return status.InvalidArgumentf("Input values should be vectors but received shapes: %v and %v", a.values.Shape(), b.values.Shape())
	case a.values.Dim(0) != n.Dim(0) || b.values.Dim(0) != m.Dim(0):
		return status.InvalidArgumentf("Expected %d and %d non-empty input values, got %d and %d", n.Dim(0), m.Dim(0), a.values.Dim(0), b.values.Dim(0))
	case a.shape.Rank() != 1 || b.shape.Rank() != 1:
		return status.InvalidArgumentf("Input shapes should be a vector but received shapes %v and %v", a.shape.Shape(), b.shape.Shape())
	case a.shape.NumElements() != n.Dim(1):
		return status.InvalidArgumentf("Second dimension of a_indices and length of a_shape must match, got %d and %d", n.Dim(1), a.shape.NumElements())
	case n.Dim(1) == 0:
		return status.InvalidArgumentf("Tesors must not be empty")
	case a.shape.NumElements() != b.shape.NumElements():
		return status.InvalidArgumentf("Operands do not have the same ranks; got shapes: %s and %s", a.shape.Summary(10), b.shape.Summary(10))
	}
	other := intarg.Values(b.shape)
	for d, x := range intarg.Values(a.shape) {
		if x != other[d] {
			return status.InvalidArgumentf("Operands' shapes do not match: got %d and %d for dimension %d", x, other[d], d)
		}
	}
	if thresh.Rank() != 0 {
		return status.InvalidArgumentf("The magnitude threshold must be a scalar: got shape %v", thresh.Shape())
	}
	return nil
}

// add merges two sparse tensors whose indices are ordered.
func add[T interface {
	tensor.Elem
	elementwise.Number
}, R interface {
	tensor.Elem
	elementwise.Real
}](size func(T) float64, _ func(R) float64) kernel.New {
	return kernel.Stateless(func(ctx *kernel.Context) error {
		l, r := side{ctx.Input(0), ctx.Input(1), ctx.Input(2)}, side{ctx.Input(3), ctx.Input(4), ctx.Input(5)}
		if err := checkAdd(l, r, ctx.Input(6)); err != nil {
			return err
		}
		if ctx.Input(6).DType() != tensor.DTypeOf[R]() {
			return status.InvalidArgumentf("the threshold of values of type %v must be %v", l.values.DType(), tensor.DTypeOf[R]())
		}
		thresh := float64(tensor.Value[R](ctx.Input(6)))
		a := &coo{ix: intarg.Values(l.indices), n: l.indices.Dim(0), rank: l.indices.Dim(1)}
		b := &coo{ix: intarg.Values(r.indices), n: r.indices.Dim(0), rank: a.rank}
		x, y := tensor.Values[T](l.values), tensor.Values[T](r.values)
		var ix []int64
		var sum []T
		for i, j := 0, 0; i < a.n || j < b.n; {
			order := -1
			if i == a.n {
				order = 1
			} else if j < b.n {
				order = slices.Compare(a.at(i), b.at(j))
			}
			switch order {
			case -1:
				ix, sum = membudget.AppendAll(ix, a.at(i)...), membudget.Append(sum, x[i])
				i++
			case 1:
				ix, sum = membudget.AppendAll(ix, b.at(j)...), membudget.Append(sum, y[j])
				j++
			default:
				if v := x[i] + y[j]; thresh <= size(v) {
					ix, sum = membudget.AppendAll(ix, a.at(i)...), membudget.Append(sum, v)
				}
				i++
				j++
			}
		}
		if err := putMatrix(ctx, 0, ix, len(sum), a.rank); err != nil {
			return err
		}
		out, err := ctx.Allocate(1, tensor.Shape{int64(len(sum))})
		if err != nil {
			return err
		}
		copy(tensor.Values[T](out), sum)
		return ctx.PassInput(2, 2)
	})
}
