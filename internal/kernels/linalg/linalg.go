// Package linalg implements the linear algebra operations on stacks of real or complex matrices,
// which are the last two dimensions of a tensor.
//
// One generic implementation of each factorization covers both real and complex matrices. It
// computes in complex128 or float64: inputs are widened, and results rounded once. Signs and orders
// that programs can observe are those of TensorFlow's kernels.
package linalg

import (
	"context"
	"math"
	"math/cmplx"

	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/internal/sys/stepctx"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// scalar is the constraint of the types that algorithms compute with.
type scalar interface{ float64 | complex128 }

// conj returns the conjugate of x.
func conj[S scalar](x S) S {
	if c, ok := any(x).(complex128); ok {
		return any(cmplx.Conj(c)).(S)
	}
	return x
}

// abs returns the absolute value of x.
func abs[S scalar](x S) float64 {
	if c, ok := any(x).(complex128); ok {
		return cmplx.Abs(c)
	}
	return math.Abs(any(x).(float64))
}

// re returns the real part of x.
func re[S scalar](x S) float64 {
	if c, ok := any(x).(complex128); ok {
		return real(c)
	}
	return any(x).(float64)
}

// of returns x as an S.
func of[S scalar](x float64) S {
	var s S
	if _, ok := any(s).(complex128); ok {
		return any(complex(x, 0)).(S)
	}
	return any(x).(S)
}

// matrix is a dense row-major matrix.
type matrix[S scalar] struct {
	a          []S
	rows, cols int
}

func newMatrix[S scalar](rows, cols int) matrix[S] {
	return matrix[S]{membudget.Make[S](rows * cols), rows, cols}
}

func identity[S scalar](n int) matrix[S] {
	m := newMatrix[S](n, n)
	for i := range n {
		m.a[i*n+i] = 1
	}
	return m
}

func (m matrix[S]) row(i int) []S     { return m.a[i*m.cols : (i+1)*m.cols] }
func (m matrix[S]) at(i, j int) S     { return m.a[i*m.cols+j] }
func (m matrix[S]) set(i, j int, x S) { m.a[i*m.cols+j] = x }
func (m matrix[S]) swapRows(i, k int) { swap(m.row(i), m.row(k)) }
func (m matrix[S]) clone() matrix[S] {
	return matrix[S]{membudget.AppendAll(nil, m.a...), m.rows, m.cols}
}
func (m matrix[S]) head(n int) matrix[S] { return matrix[S]{m.a[:n*m.cols], n, m.cols} }

// adjoint returns the conjugate transpose.
func (m matrix[S]) adjoint() matrix[S] {
	t := newMatrix[S](m.cols, m.rows)
	for i := range m.rows {
		for j, x := range m.row(i) {
			t.a[j*m.rows+i] = conj(x)
		}
	}
	return t
}

// left returns the first n columns.
func (m matrix[S]) left(n int) matrix[S] {
	t := newMatrix[S](m.rows, n)
	for i := range m.rows {
		copy(t.row(i), m.row(i)[:n])
	}
	return t
}

// times returns m*b, or an unfinished value when ctx ends.
func (m matrix[S]) times(ctx context.Context, b matrix[S]) matrix[S] {
	c := newMatrix[S](m.rows, b.cols)
	p := stepctx.Progress{Context: ctx}
	for i := range m.rows {
		if p.Pass(m.cols*b.cols) != nil {
			break
		}
		for k, x := range m.row(i) {
			if x != 0 {
				axpy(c.row(i), x, b.row(k))
			}
		}
	}
	return c
}

func (m matrix[S]) finite() bool {
	for _, x := range m.a {
		if v := abs(x); math.IsNaN(v) || math.IsInf(v, 0) {
			return false
		}
	}
	return true
}

// fill sets all elements to x.
func (m matrix[S]) fill(x float64) {
	for i := range m.a {
		m.a[i] = of[S](x)
	}
}

// axpy adds x times b to acc.
func axpy[S scalar](acc []S, x S, b []S) {
	for j, y := range b {
		acc[j] += x * y
	}
}

func swap[S scalar](a, b []S) {
	for i := range a {
		a[i], b[i] = b[i], a[i]
	}
}

// element describes the conversion between an element type and the scalar type that computes it.
type element[T any, S scalar] struct {
	widen  func(T) S
	narrow func(S) T
}

// read returns matrix i of a stack.
func (e element[T, S]) read(vals []T, i, rows, cols int) matrix[S] {
	m := newMatrix[S](rows, cols)
	for j, v := range vals[i*rows*cols : (i+1)*rows*cols] {
		m.a[j] = e.widen(v)
	}
	return m
}

func (e element[T, S]) write(dst []T, i int, src []S) {
	for j, x := range src {
		dst[i*len(src)+j] = e.narrow(x)
	}
}

var (
	f16  = element[tensor.Float16Elem, float64]{func(v tensor.Float16Elem) float64 { return float64(v.Float32()) }, func(x float64) tensor.Float16Elem { return tensor.Float16Of(float32(x)) }}
	bf16 = element[tensor.BFloat16Elem, float64]{func(v tensor.BFloat16Elem) float64 { return float64(v.Float32()) }, func(x float64) tensor.BFloat16Elem { return tensor.BFloat16Of(float32(x)) }}
	f32  = element[float32, float64]{func(v float32) float64 { return float64(v) }, func(x float64) float32 { return float32(x) }}
	f64  = element[float64, float64]{func(v float64) float64 { return v }, func(x float64) float64 { return x }}
	c64  = element[complex64, complex128]{func(v complex64) complex128 { return complex128(v) }, func(x complex128) complex64 { return complex64(x) }}
	c128 = element[complex128, complex128]{func(v complex128) complex128 { return v }, func(x complex128) complex128 { return x }}
)

// family is an operation on stacks of matrices. It computes the shapes of the output matrices from
// those of the input matrices, and the outputs for one matrix of each input. The outputs may be
// unfinished if the step ends: a large matrix takes minutes.
type family[S scalar] struct {
	outs    func(c *kernel.Construction, in []size) ([][]int64, error)
	compute func(c *call, in []matrix[S]) ([][]S, error)
}

// call is an execution of an operation.
type call struct {
	*kernel.Construction
	step context.Context // ends with the step
}

// size is the size of a matrix.
type size struct{ rows, cols int }

// table returns the kernels of an operation for the given types, from its real and its complex
// implementation.
func table(real family[float64], complex family[complex128], types ...tensor.DType) kernel.Table {
	all := kernel.Table{
		tensor.Float16: stacked(f16, real), tensor.BFloat16: stacked(bf16, real), tensor.Float32: stacked(f32, real),
		tensor.Float64: stacked(f64, real), tensor.Complex64: stacked(c64, complex), tensor.Complex128: stacked(c128, complex),
	}
	t := kernel.Table{}
	for _, d := range types {
		t[d] = all[d]
	}
	return t
}

var (
	single = []tensor.DType{tensor.Float32, tensor.Float64}
	full   = append(single[:2:2], tensor.Complex64, tensor.Complex128)
	// inverses and QR factors also support float16.
	withHalf = append(full[:4:4], tensor.Float16)
)

func stacked[T tensor.Elem, S scalar](e element[T, S], f family[S]) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		return kernel.Func(func(ctx *kernel.Context) error { return runStack(ctx, c, e, len(c.Inputs), f) }), nil
	}
}

// runStack runs f on the stacks of matrices that are the first n inputs.
func runStack[T tensor.Elem, S scalar](ctx *kernel.Context, c *kernel.Construction, e element[T, S], n int, f family[S]) error {
	batch, sizes, err := analyze(ctx, n)
	if err != nil {
		return err
	}
	dims, err := f.outs(c, sizes)
	if err != nil {
		return err
	}
	outs := membudget.Make[[]T](len(dims))
	empty := true
	for i := range n {
		empty = empty && ctx.Input(i).NumElements() == 0
	}
	for i, d := range dims {
		shape := append(append(tensor.Shape{}, batch...), d...)
		out, err := ctx.Allocate(i, shape)
		if err != nil {
			return err
		}
		outs[i] = tensor.Values[T](out)
		empty = empty && len(outs[i]) == 0
	}
	// Outputs that are not computed are scalars.
	for i := len(dims); i < ctx.NumOutputs(); i++ {
		if _, err := ctx.AllocateZeros(i, tensor.Shape{}); err != nil {
			return err
		}
	}
	if empty { // an empty matrix, or a stack of them, may have any number of rows
		return nil
	}
	return each(ctx, int(batch.NumElements()), sizes, func(i int) error {
		in := membudget.Make[matrix[S]](len(sizes))
		for j, s := range sizes {
			in[j] = e.read(tensor.Values[T](ctx.Input(j)), i, s.rows, s.cols)
		}
		results, err := f.compute(&call{c, ctx.Context()}, in)
		for j := range results {
			e.write(outs[j], i, results[j])
		}
		return err
	})
}

// analyze returns the batch dimensions, which all inputs share, and the matrix size of each input.
func analyze(ctx *kernel.Context, n int) (tensor.Shape, []size, error) {
	var batch tensor.Shape
	sizes := membudget.Make[size](n)
	for i := range sizes {
		s := ctx.Input(i).Shape()
		switch {
		case i == 0 && len(s) < 2:
			return nil, nil, status.InvalidArgumentf("Input tensor %d must have rank >= 2, got %d", i, len(s))
		case i == 0:
			batch = s[:len(s)-2]
		case len(s) != len(batch)+2:
			return nil, nil, status.InvalidArgumentf("All input tensors must have the same rank.")
		case !s[:len(batch)].Equal(batch):
			return nil, nil, status.InvalidArgumentf("All input tensors must have the same outer dimensions.")
		}
		sizes[i] = size{int(s[len(batch)]), int(s[len(batch)+1])}
	}
	return batch, sizes, nil
}

// largeWork is the number of operations from which on a matrix is not finished when the step ends.
const largeWork = 1 << 15

// each calls f for the matrices of a stack, on several cores if they are large enough. It returns
// the error of the first matrix that fails. When the step ends, it drops what f has done.
func each(ctx *kernel.Context, n int, sizes []size, f func(i int) error) error {
	work := 1
	for _, s := range sizes {
		work = max(work, s.rows*s.cols*max(s.rows, s.cols))
	}
	return parallel.Each(ctx.Context(), n, max(1, elementwise.Grain(2)/work), func(i int) error {
		err := f(i)
		if work >= largeWork && ctx.Context().Err() != nil {
			return ctx.Context().Err()
		}
		return err
	})
}

// square checks that the only input is square.
func square(in []size) error {
	if in[0].rows != in[0].cols {
		return status.InvalidArgumentf("Input matrix must be square.")
	}
	return nil
}

// sameSize returns the output size of an operation on one square matrix whose output has the same
// size.
func sameSize(_ *kernel.Construction, in []size) ([][]int64, error) {
	return [][]int64{{int64(in[0].rows), int64(in[0].cols)}}, square(in)
}

// solution returns the output size of an operation that solves systems with a square matrix.
func solution(_ *kernel.Construction, in []size) ([][]int64, error) {
	if in[0].rows != in[0].cols {
		return nil, status.InvalidArgumentf("First input (lhs) must be a square matrix.")
	}
	return rectangular(in)
}

func rectangular(in []size) ([][]int64, error) {
	if in[0].rows != in[1].rows {
		return nil, status.InvalidArgumentf("Input matrix and rhs are incompatible.")
	}
	return [][]int64{{int64(in[0].cols), int64(in[1].cols)}}, nil
}

// squares checks that s is a stack of square matrices and returns it.
func squares(s shapefn.Shape) (shapefn.Shape, error) {
	s, err := opdef.WithRankAtLeast(s, 2)
	if err != nil || !s.RankKnown() {
		return s, err
	}
	n, err := opdef.MergeDims(s.Dim(-2), s.Dim(-1))
	if err != nil {
		return s, err
	}
	return shapefn.Concat(shapefn.Sub(s, 0, -2), shapefn.Of(n, n)), nil
}

func squareShape(c *opdef.ShapeContext) (err error) {
	c.Out[0], err = squares(c.In[0])
	return err
}

// register registers an operation with one type attribute T.
func register(name, doc string, in, out, attrs []string, shape opdef.ShapeFn, t kernel.Table) {
	kernel.Register(kernel.Op{
		Def:     opdef.Def{Name: name, Doc: doc, In: in, Out: out, Attrs: attrs, Shape: shape},
		Kernels: kernel.ByType("T", t),
	})
}

const (
	anyTypes  = "T: {float64, float32, float16, complex64, complex128}"
	realTypes = "T: {float64, float32}"
)
