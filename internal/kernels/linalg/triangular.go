package linalg

import (
	"slices"

	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	in, out := []string{"matrix: T", "rhs: T"}, []string{"output: T"}
	attrs := []string{"lower: bool = true", "adjoint: bool = false"}
	register("MatrixTriangularSolve", "Solves systems of linear equations with triangular matrices. Does not read the other triangle.", in, out,
		append(slices.Clone(attrs), "T: {bfloat16, float64, float32, float16, complex64, complex128}"), triangularShape, kernel.Table{
			tensor.Float16: newTriangular(f16, false), tensor.BFloat16: newTriangular(bf16, false), tensor.Float32: newTriangular(f32, false),
			tensor.Float64: newTriangular(f64, false), tensor.Complex64: newTriangular(c64, false), tensor.Complex128: newTriangular(c128, false),
		})
	register("BandedTriangularSolve", "Solves systems of linear equations with banded triangular matrices, given by their diagonals.", in, out,
		append(slices.Clone(attrs), anyTypes), bandedShape, kernel.Table{
			tensor.Float32: newTriangular(f32, true), tensor.Float64: newTriangular(f64, true),
			tensor.Complex64: newTriangular(c64, true), tensor.Complex128: newTriangular(c128, true),
		})
}

func triangularShape(c *opdef.ShapeContext) error {
	lhs, err := squares(c.In[0])
	if err != nil {
		return err
	}
	return broadcastSolution(c, lhs)
}

func bandedShape(c *opdef.ShapeContext) error {
	lhs, err := opdef.WithRankAtLeast(c.In[0], 2)
	if err != nil {
		return err
	}
	bands, m := lhs.Dim(-2), lhs.Dim(-1)
	switch {
	case bands == 0:
		return status.InvalidArgumentf("Number of bands must be positive, but is %d", bands)
	case bands > 0 && m >= 0 && bands > m:
		return status.InvalidArgumentf("Number of bands %d cannot exceed the size of the matrix %d", bands, m)
	}
	return broadcastSolution(c, lhs)
}

func broadcastSolution(c *opdef.ShapeContext, lhs shapefn.Shape) error {
	rhs, err := opdef.WithRankAtLeast(c.In[1], 2)
	if err != nil {
		return err
	}
	batch, err := opdef.BroadcastShapes(shapefn.Sub(lhs, 0, -2), shapefn.Sub(rhs, 0, -2))
	if err != nil {
		return err
	}
	m, err := opdef.MergeDims(lhs.Dim(-1), rhs.Dim(-2))
	c.Out[0] = shapefn.Concat(batch, shapefn.Of(m, rhs.Dim(-1)))
	return err
}

func newTriangular[T tensor.Elem, S scalar](e element[T, S], banded bool) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		lower, adjoint := c.Attrs.Bool("lower"), c.Attrs.Bool("adjoint")
		return kernel.Func(func(ctx *kernel.Context) error {
			a, b := ctx.Input(0), ctx.Input(1)
			for i, in := range []*tensor.Tensor{a, b} {
				if banded && in.NumElements() == 0 {
					return status.InvalidArgumentf("In[%d] must not be an empty tensor: %v", i, in)
				}
			}
			batch, err := checkTriangular(a.Shape(), b.Shape(), banded)
			if err == nil {
				err = checkInner(a.Shape(), b.Shape(), lower, adjoint)
			}
			if err != nil {
				return err
			}
			rows, n, cols := a.Dim(a.Rank()-2), b.Dim(b.Rank()-2), b.Dim(b.Rank()-1)
			out, err := ctx.Allocate(0, append(slices.Clone(batch), int64(n), int64(cols)))
			if err != nil || out.NumElements() == 0 {
				return err
			}
			atA := elementwise.Offsets(batch, a.Shape()[:a.Rank()-2])
			atB := elementwise.Offsets(batch, b.Shape()[:b.Rank()-2])
			return each(ctx, len(atA), []size{{n, cols}, {n, n}}, func(i int) error {
				m := e.read(tensor.Values[T](a), atA[i], rows, n)
				if banded {
					m = fromBands(m, lower)
				}
				if banded && (factored[S]{lu: m}).singular() {
					return status.InvalidArgumentf("Input matrix is not invertible.")
				}
				x := e.read(tensor.Values[T](b), atB[i], n, cols)
				if adjoint {
					m = m.adjoint()
				}
				substitute(ctx.Context(), m, x, lower != adjoint, false)
				e.write(tensor.Values[T](out), i, x.a)
				return nil
			})
		}), nil
	}
}

// checkTriangular returns the batch dimensions of the solution.
func checkTriangular(a, b tensor.Shape, banded bool) (tensor.Shape, error) {
	for i, s := range []tensor.Shape{a, b} {
		if len(s) < 2 {
			return nil, status.InvalidArgumentf("In[%d] ndims must be >= 2: %d", i, len(s))
		}
	}
	batch, err := elementwise.Broadcast(a[:len(a)-2], b[:len(b)-2])
	if err != nil {
		return nil, status.InvalidArgumentf("In[0] and In[1] must have compatible batch dimensions: %v vs. %v", a, b)
	}
	n, rows := a[len(a)-1], a[len(a)-2]
	switch {
	case banded && rows <= 0:
		return nil, status.InvalidArgumentf("Number of bands must be positive, but is %d", rows)
	case banded && rows > n:
		return nil, status.InvalidArgumentf("Number of bands %d cannot exceed the size of the matrix %d", rows, n)
	case !banded && rows != n:
		return nil, status.InvalidArgumentf("In[0] matrices in the last dimensions must be square (%d =/= %d)", n, rows)
	}
	return batch, nil
}

// checkInner checks that matrices and right-hand sides have the same number of rows.
func checkInner(a, b tensor.Shape, lower, adjoint bool) error {
	n, rows := a[len(a)-1], b[len(b)-2]
	if n == rows {
		return nil
	}
	flag := map[bool]int{true: 1}
	return status.InvalidArgumentf("In[0] mismatch In[1] shape: %d vs. %d: %v %v %d %d", n, rows, a, b, flag[lower], flag[adjoint])
}

// fromBands returns the triangular matrix with the given diagonals. For a lower matrix, the main
// diagonal is first and diagonals are right-aligned. For an upper matrix, it is last and they are
// left-aligned.
func fromBands[S scalar](bands matrix[S], lower bool) matrix[S] {
	m := newMatrix[S](bands.cols, bands.cols)
	for d := range bands.rows {
		for j := d; j < bands.cols; j++ {
			if lower {
				m.set(j, j-d, bands.at(d, j))
			} else {
				m.set(j-d, j, bands.at(bands.rows-1-d, j-d))
			}
		}
	}
	return m
}
