package sparse

import (
	"context"

	"github.com/weft-ml/weft/internal/numeric/simd"
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
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
			Name: "SparseTensorDenseMatMul", Doc: "Multiplies a sparse matrix by a dense matrix.",
			In:  []string{"a_indices: Tindices", "a_values: T", "a_shape: int64", "b: T"},
			Out: []string{"product: T"},
			Attrs: []string{"T: type", "Tindices: {int32, int64} = int64",
				"adjoint_a: bool = false", "adjoint_b: bool = false"},
			Shape: matMulShape,
		},
		Kernels: kernel.ByType("T", kernel.Table{
			tensor.Float32:    newMatMul(accumulate[float32], addListed[float32], addColumn[float32], same[float32]),
			tensor.Float64:    newMatMul(accumulate[float64], addListed[float64], addColumn[float64], same[float64]),
			tensor.Int32:      newMatMul(accumulate[int32], nil, nil, same[int32]),
			tensor.Complex64:  newMatMul(accumulate[complex64], nil, nil, func(v complex64) complex64 { return complex(real(v), -imag(v)) }),
			tensor.Complex128: newMatMul(accumulate[complex128], nil, nil, func(v complex128) complex128 { return complex(real(v), -imag(v)) }),
			tensor.Float16:    newShortMatMul[tensor.Float16Elem](),
			tensor.BFloat16:   newShortMatMul[tensor.BFloat16Elem](),
		}),
	})
}

func matMulShape(c *opdef.ShapeContext) error {
	if err := shapefn.CheckRanks(c, 0, 2, 1); err != nil {
		return err
	}
	a, err := shapefn.Input(c, 2)
	if err != nil {
		return err
	}
	if a, err = opdef.WithRank(a, 2); err != nil {
		return err
	}
	b, err := opdef.WithRank(c.In[3], 2)
	if err != nil {
		return err
	}
	rows, left, right, cols := a.Dim(0), a.Dim(1), b.Dim(0), b.Dim(1)
	if c.Attrs.Bool("adjoint_a") {
		rows, left = left, rows
	}
	if c.Attrs.Bool("adjoint_b") {
		right, cols = cols, right
	}
	c.Out[0] = shapefn.Of(rows, cols)
	_, err = opdef.MergeDims(left, right)
	return err
}

func same[T any](v T) T { return v }

// accumulate adds v times the elements of b, stride apart, to acc.
func accumulate[T elementwise.Number](acc []T, v T, b []T, stride int) {
	if stride == 1 {
		for j, x := range b[:len(acc)] {
			acc[j] += v * x
		}
		return
	}
	for j := range acc {
		acc[j] += v * b[j*stride]
	}
}

// product describes one multiplication: the positions of the elements of a, and the sizes.
type product struct {
	s                 *coo
	row, inner        int // columns of the indices with the row and the inner index
	rows, depth, cols int
	step, stride      int // distances in b between inner indices and between columns
}

// addListed adds coef[i] times row list[2*i] of b to acc.
func addListed[T simd.Float](acc, b []T, list []int64, coef []T) {
	simd.AddListed(acc, b, list, 2, coef)
}

// addColumn multiplies by a matrix b with one column. It returns the number of the first element of
// a that is out of range, or the number of elements. It reads each position once and does not
// search for the end of a row first, because the length of a row is unpredictable.
func addColumn[T simd.Float](p *product, out, a, b []T) int {
	ix, row, inner := p.s.ix[:2*len(a)], p.row, p.inner
	for i := 0; i < len(a); {
		m := ix[2*i+row]
		if uint64(m) >= uint64(len(out)) {
			return i
		}
		sum := out[m]
		for i < len(a) && ix[2*i+row] == m {
			k := ix[2*i+inner]
			if uint64(k) >= uint64(len(b)) {
				return i
			}
			sum += a[i] * b[k]
			i++
		}
		out[m] = sum
	}
	return len(a)
}

// newMatMul returns the kernel of the product. It calls addAll for consecutive elements of a in one
// row, or add for each element if addAll is nil. If b has one column and column is not nil, it
// calls column instead.
func newMatMul[T tensor.Elem](add func(acc []T, v T, b []T, stride int), addAll func(acc, b []T, list []int64, coef []T),
	column func(p *product, out, a, b []T) int, conj func(T) T,
) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		adjA, adjB := c.Attrs.Bool("adjoint_a"), c.Attrs.Bool("adjoint_b")
		return kernel.Func(func(ctx *kernel.Context) error {
			p, err := newProduct(ctx, adjA, adjB)
			if err != nil {
				return err
			}
			out, err := ctx.AllocateZeros(0, tensor.Shape{int64(p.rows), int64(p.cols)})
			if err != nil || out.NumElements() == 0 || p.depth == 0 {
				return err
			}
			return multiply(ctx.Context(), p, tensor.Values[T](out), tensor.Values[T](p.s.values), conjugate(tensor.Values[T](ctx.Input(3)), adjB, conj), adjA, add, addAll, column, conj)
		}), nil
	}
}

// newShortMatMul sums in float32 and rounds once.
func newShortMatMul[H elementwise.Short]() kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		adjA, adjB := c.Attrs.Bool("adjoint_a"), c.Attrs.Bool("adjoint_b")
		return kernel.Func(func(ctx *kernel.Context) error {
			p, err := newProduct(ctx, adjA, adjB)
			if err != nil {
				return err
			}
			out, err := ctx.AllocateZeros(0, tensor.Shape{int64(p.rows), int64(p.cols)})
			if err != nil || out.NumElements() == 0 || p.depth == 0 {
				return err
			}
			sums := membudget.Make[float32](out.NumElements())
			if err := multiply(ctx.Context(), p, sums, wide[H](p.s.values), wide[H](ctx.Input(3)), adjA, accumulate, addListed[float32], addColumn[float32], same[float32]); err != nil {
				return err
			}
			elementwise.Narrow(tensor.Values[H](out), sums)
			return nil
		}), nil
	}
}

func wide[H elementwise.Short](t *tensor.Tensor) []float32 {
	out := membudget.Make[float32](t.NumElements())
	elementwise.Widen(out, tensor.Values[H](t))
	return out
}

func conjugate[T any](v []T, yes bool, conj func(T) T) []T {
	switch any(v).(type) {
	case []complex64, []complex128:
		if !yes {
			return v
		}
		out := membudget.Make[T](len(v))
		for i, x := range v {
			out[i] = conj(x)
		}
		return out
	}
	return v
}

func newProduct(ctx *kernel.Context, adjA, adjB bool) (*product, error) {
	if err := checkMatMul(ctx.Input(0), ctx.Input(1), ctx.Input(2), ctx.Input(3)); err != nil {
		return nil, err
	}
	shape, b := intarg.Values(ctx.Input(2)), ctx.Input(3)
	p := &product{inner: 1, cols: b.Dim(1), depth: b.Dim(0), step: b.Dim(1), stride: 1}
	if adjA {
		p.row, p.inner = 1, 0
	}
	if adjB {
		p.cols, p.depth, p.step, p.stride = b.Dim(0), b.Dim(1), 1, b.Dim(1)
	}
	if int64(p.depth) != shape[p.inner] {
		return nil, status.InvalidArgumentf("Cannot multiply A and B because inner dimension does not match: %d vs. %d.  Did you forget a transpose?  "+
			"Dimensions of A: [%d, %d).  Dimensions of B: %v", shape[p.inner], p.depth, shape[0], shape[1], b.Shape())
	}
	var err error
	p.s, err = makeCOO(ctx.Input(0), ctx.Input(1), shape)
	p.rows = int(shape[p.row])
	return p, err
}

func checkMatMul(indices, values, shape, b *tensor.Tensor) error {
	switch {
	case b.Rank() != 2:
		return status.InvalidArgumentf("Tensor 'b' is not a matrix")
	case shape.Rank() != 1:
		return status.InvalidArgumentf("Tensor 'a_shape' is not a vector")
	case shape.NumElements() != 2:
		return status.InvalidArgumentf("Tensor 'a_shape' must have 2 elements")
	case values.Rank() != 1:
		return status.InvalidArgumentf("Tensor 'a_values' is not a vector")
	case indices.Rank() != 2:
		return status.InvalidArgumentf("Tensor 'a_indices' is not a matrix")
	case indices.Dim(0) != values.NumElements():
		return status.InvalidArgumentf("Number of rows of a_indices does not match number of entries in a_values")
	case indices.Dim(1) != 2:
		return status.InvalidArgumentf("Number of columns of a_indices does not match number of entries in a_shape")
	}
	return nil
}

// multiply adds the product to out, which is zeroed. It fails when ctx ends.
func multiply[T any](ctx context.Context, p *product, out, a, b []T, adjA bool, add func(acc []T, v T, b []T, stride int),
	addAll func(acc, b []T, list []int64, coef []T), column func(p *product, out, a, b []T) int, conj func(T) T,
) error {
	if p.cols == 1 && column != nil {
		if i := column(p, out, a, b); i < len(a) {
			return p.outside(i)
		}
		return nil
	}
	const most = 1 << 22 // elements of rows that are added between two looks at ctx
	ix := p.s.ix         // two coordinates per element
	longest, progress := max(1, most/p.cols), stepctx.Progress{Context: ctx, Each: 4}
	for i := 0; i < p.s.n; {
		m := ix[2*i+p.row]
		if uint64(ix[2*i+p.inner]) >= uint64(p.depth) || uint64(m) >= uint64(p.rows) {
			return p.outside(i)
		}
		row, from := out[int(m)*p.cols:(int(m)+1)*p.cols], i
		i++
		if addAll == nil || p.stride != 1 {
			if err := progress.Pass(p.cols); err != nil {
				return err
			}
			k, v := ix[2*from+p.inner], a[from]
			if adjA {
				v = conj(v)
			}
			add(row, v, b[int(k)*p.step:], p.stride)
			continue
		}
		for i < p.s.n && i-from < longest && ix[2*i+p.row] == m && uint64(ix[2*i+p.inner]) < uint64(p.depth) {
			i++
		}
		if err := progress.Pass((i - from) * p.cols); err != nil {
			return err
		}
		addAll(row, b, ix[2*from+p.inner:], a[from:i])
	}
	return nil
}

// outside returns the error for element i of a, which is out of range.
func (p *product) outside(i int) error {
	at := p.s.at(i)
	m, k := at[p.row], at[p.inner]
	if uint64(k) >= uint64(p.depth) {
		return status.InvalidArgumentf("k (%d) from index[%d,%d] out of bounds (>=%d)", k, i, p.inner, p.depth)
	}
	return status.InvalidArgumentf("m (%d) from index[%d,%d] out of bounds (>=%d)", m, i, p.row, p.rows)
}
