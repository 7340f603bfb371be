package linalg

import (
	"slices"

	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// The operations of this file are deprecated: the names without "Batch" take stacks of matrices
// too. Graphs of TensorFlow 0.11 and earlier contain them.
func init() {
	in, out, system := []string{"input: T"}, []string{"output: T"}, []string{"matrix: T", "rhs: T"}
	solve := func(c *opdef.ShapeContext) error { return solveShape(c, true) }
	register("BatchMatrixInverse", "Inverts square matrices, or their adjoints. Use MatrixInverse.", in, out,
		[]string{"adjoint: bool = false", realTypes}, squareShape, table(inverse[float64](), family[complex128]{}, single...))
	register("BatchMatrixDeterminant", "Computes the determinants of square matrices. Use MatrixDeterminant.", in, out,
		[]string{"T: {float32, float64, complex64, complex128}"}, determinantShape,
		table(determinant[float64](), determinant[complex128](), full...))
	register("BatchMatrixSolve", "Solves systems of linear equations with square matrices, or their adjoints. Use MatrixSolve.",
		system, out, []string{"adjoint: bool = false", realTypes}, solve, table(solver[float64](), family[complex128]{}, single...))
	register("BatchMatrixTriangularSolve", "Solves systems of linear equations with triangular matrices. Use MatrixTriangularSolve.",
		system, out, []string{"lower: bool = true", "adjoint: bool = false", realTypes}, solve,
		kernel.Table{tensor.Float32: newTriangular(f32, false), tensor.Float64: newTriangular(f64, false)})
	register("BatchMatrixSolveLs", "Solves linear least-squares problems. Use MatrixSolveLs.",
		append(slices.Clone(system), "l2_regularizer: float64"), out, []string{realTypes, "fast: bool = true"},
		func(c *opdef.ShapeContext) error { return solveShape(c, false) },
		kernel.Table{tensor.Float32: newLeastSquares(f32), tensor.Float64: newLeastSquares(f64)})
	register("BatchSvd", "Computes the singular value decomposition of matrices. Use Svd.", in, []string{"s: T", "u: T", "v: T"},
		[]string{"compute_uv: bool = true", "full_matrices: bool = false", "T: {float64, float32, complex64, complex128}"}, svdShape,
		table(svdOp[float64](), svdOp[complex128](), full...))
	register("BatchSelfAdjointEigV2", "Computes the eigenvalues and the eigenvectors of symmetric matrices. Use SelfAdjointEigV2.",
		in, []string{"e: T", "v: T"}, []string{"compute_v: bool = true", realTypes}, eigShape,
		table(selfAdjointEig[float64](), family[complex128]{}, single...))
	const doc = "Returns the eigenvalues of symmetric matrices in the first row, and the eigenvectors below it. Use SelfAdjointEigV2."
	stacked := table(stackedEig(), family[complex128]{}, single...)
	register("SelfAdjointEig", doc, in, out, []string{"T: {float64, float32, float16}"}, stackedEigShape, stacked)
	register("BatchSelfAdjointEig", doc, in, out, []string{realTypes}, stackedEigShape, stacked)
}

// stackedEigShape is the shape function of matrices with a row of eigenvalues above eigenvectors.
func stackedEigShape(c *opdef.ShapeContext) error {
	s, err := squares(c.In[0])
	if err != nil || !s.RankKnown() {
		return err
	}
	n := s.Dim(-1)
	rows := n
	if n >= 0 {
		rows = n + 1
	}
	c.Out[0] = shapefn.Concat(shapefn.Sub(s, 0, -2), shapefn.Of(rows, n))
	return nil
}

func stackedEig() family[float64] {
	outs := func(_ *kernel.Construction, in []size) ([][]int64, error) {
		n := int64(in[0].rows)
		return [][]int64{{n + 1, n}}, square(in)
	}
	return family[float64]{outs, func(c *call, in []matrix[float64]) ([][]float64, error) {
		e, v, err := hermitianEig(c.step, in[0])
		return [][]float64{append(e, v.a...)}, err
	}}
}
