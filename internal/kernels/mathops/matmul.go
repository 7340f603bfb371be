package mathops

import (
	"context"

	"github.com/weft-ml/weft/internal/numeric/gemm"
	"github.com/weft-ml/weft/internal/numeric/simd"
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "MatMul",
			Doc:  "Multiplies matrix a [m, k] by matrix b [k, n]. transpose_a and transpose_b transpose a matrix first.",
			In:   []string{"a: T", "b: T"},
			Out:  []string{"product: T"},
			Attrs: []string{
				"transpose_a: bool = false", "transpose_b: bool = false",
				"T: {bfloat16, float16, float32, float64, int32, int64, uint8, uint16, uint32, uint64, complex64, complex128}",
				"grad_a: bool = false", "grad_b: bool = false",
			},
			Shape: matMulShape,
		},
		Kernels: byT(kernel.Table{
			tensor.Float32:    newMatMul(product[float32]),
			tensor.Float64:    newMatMul(product[float64]),
			tensor.Float16:    newMatMul(halfProduct[tensor.Float16Elem]),
			tensor.BFloat16:   newMatMul(bfloatProduct),
			tensor.Int32:      newMatMul(anyProduct[int32]),
			tensor.Int64:      newMatMul(anyProduct[int64]),
			tensor.Uint8:      newMatMul(anyProduct[uint8]),
			tensor.Uint16:     newMatMul(anyProduct[uint16]),
			tensor.Uint32:     newMatMul(anyProduct[uint32]),
			tensor.Uint64:     newMatMul(anyProduct[uint64]),
			tensor.Complex64:  newMatMul(anyProduct[complex64]),
			tensor.Complex128: newMatMul(anyProduct[complex128]),
		}),
	})
}

func matMulShape(c *opdef.ShapeContext) error {
	a, err := opdef.WithRank(c.In[0], 2)
	if err != nil {
		return err
	}
	b, err := opdef.WithRank(c.In[1], 2)
	if err != nil {
		return err
	}
	m, ka := a.Dim(0), a.Dim(1)
	if c.Attrs.Bool("transpose_a") {
		m, ka = ka, m
	}
	kb, n := b.Dim(0), b.Dim(1)
	if c.Attrs.Bool("transpose_b") {
		kb, n = n, kb
	}
	if _, err := opdef.MergeDims(ka, kb); err != nil {
		return err
	}
	c.Out[0] = shapefn.Of(m, n)
	return nil
}

// multiply computes c = a*b for matrices of one type.
type multiply[T any] func(c, a, b gemm.Matrix[T])

func product[T simd.Float](c, a, b gemm.Matrix[T]) { gemm.Mul(c, a, b, gemm.Options[T]{}) }

func anyProduct[T gemm.Number](c, a, b gemm.Matrix[T]) { gemm.Generic(c, a, b, false) }

func halfProduct[H elementwise.Short](c, a, b gemm.Matrix[H]) {
	gemm.Half(c, a, b, elementwise.Widen[H], elementwise.Narrow[H])
}

func bfloatProduct(c, a, b gemm.Matrix[tensor.BFloat16Elem]) {
	gemm.BFloat16(c, a, b, elementwise.Widen[tensor.BFloat16Elem], elementwise.Narrow[tensor.BFloat16Elem])
}

// matrix returns a matrix with the given elements, transposed if requested.
func matrix[T any](data []T, rows, cols int, transposed bool) gemm.Matrix[T] {
	m := gemm.Dense(data, rows, cols)
	if transposed {
		return m.T()
	}
	return m
}

func newMatMul[T tensor.Elem](mul multiply[T]) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		ta, tb := c.Attrs.Bool("transpose_a"), c.Attrs.Bool("transpose_b")
		return kernel.Func(func(ctx *kernel.Context) error {
			_, err := matMul(ctx, ta, tb, mul)
			return err
		}), nil
	}
}

// matMul sets output 0 to the product of both inputs and returns it.
func matMul[T tensor.Elem](ctx *kernel.Context, ta, tb bool, mul multiply[T]) (*tensor.Tensor, error) {
	a, b := ctx.Input(0), ctx.Input(1)
	for i, m := range []*tensor.Tensor{a, b} {
		if m.Rank() < 2 {
			return nil, status.InvalidArgumentf("In[%d] ndims must be >= 2", i)
		}
	}
	if a.Rank() != 2 || b.Rank() != 2 {
		return nil, status.InvalidArgumentf("In[0] and In[1] has different ndims: %v vs. %v", a.Shape(), b.Shape())
	}
	x := matrix(tensor.Values[T](a), a.Dim(0), a.Dim(1), ta)
	y := matrix(tensor.Values[T](b), b.Dim(0), b.Dim(1), tb)
	if x.Cols != y.Rows {
		return nil, status.InvalidArgumentf("Matrix size-incompatible: In[0]: %v, In[1]: %v", a.Shape(), b.Shape())
	}
	out, err := ctx.Allocate(0, tensor.Shape{int64(x.Rows), int64(y.Cols)})
	if err != nil {
		return nil, err
	}
	z := tensor.Values[T](out)
	if x.Cols == 0 {
		clear(z)
	}
	if x.Cols == 0 || len(z) == 0 {
		return out, nil
	}
	return out, inPieces(ctx.Context(), mul, gemm.Dense(z, x.Rows, y.Cols), x, y)
}

// pieceWork and pieceRows are the least number of multiplications and of rows between two looks at
// the context of a step. Each piece prepares b again, which takes as long as a few of its rows.
const (
	pieceWork = 1 << 36
	pieceRows = 512
)

// inPieces multiplies a, in pieces if it takes seconds, by b. c has no gaps. It fails when ctx
// ends.
func inPieces[T any](ctx context.Context, mul multiply[T], c, a, b gemm.Matrix[T]) error {
	rows := max(pieceRows, pieceWork/max(1, b.Rows*b.Cols))
	for lo := 0; lo < c.Rows; lo += rows {
		n := min(rows, c.Rows-lo)
		part := a
		part.Data, part.Rows = a.Data[lo*a.RowStride:], n
		mul(gemm.Dense(c.Data[lo*c.Cols:(lo+n)*c.Cols], n, c.Cols), part, b)
		if n < c.Rows && ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}
