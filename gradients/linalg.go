package gradients

import (
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/status"
)

// The rules for factorizations and solutions are those of M. Giles, "Collected matrix derivative results for forward and
// reverse mode algorithmic differentiation" (2008), for every matrix of a batch.
func init() {
	Register(func(c *Call) []Grad {
		s, adjoint, inverse := c.S, c.Node.Attrs.Bool("adjoint"), c.Out(0)
		inner := matrixProduct(s, c.DY(0), inverse, adjoint, !adjoint)
		return List(op.Neg(s, matrixProduct(s, inverse, inner, !adjoint, false)))
	}, "MatrixInverse")
	Register(func(c *Call) []Grad {
		return List(op.Mul(c.S, scalars(c.S, op.Mul(c.S, c.DY(0), conj(c.S, c.Out(0)))), adjointInverse(c)))
	}, "MatrixDeterminant")
	Register(func(c *Call) []Grad {
		return List(op.Mul(c.S, scalars(c.S, c.DY(1)), adjointInverse(c)))
	}, "LogMatrixDeterminant")
	Register(choleskyGrad, "Cholesky")
	Register(func(c *Call) []Grad {
		adjoint := c.Node.Attrs.Bool("adjoint")
		return solution(c, adjoint, op.MatrixSolve(c.S, c.In(0), c.DY(0), op.MatrixSolveAdjoint(!adjoint)))
	}, "MatrixSolve")
	Register(func(c *Call) []Grad {
		s, adjoint, lower := c.S, c.Node.Attrs.Bool("adjoint"), c.Node.Attrs.Bool("lower")
		grads := solution(c, adjoint, op.MatrixTriangularSolve(s, c.In(0), c.DY(0),
			op.MatrixTriangularSolveAdjoint(!adjoint), op.MatrixTriangularSolveLower(lower)))
		grads[0] = Of(triangle(s, grads[0].Dense, lower))
		for i := range grads { // batches may have been broadcast
			grads[i] = Of(sumTo(s, grads[i].Dense, c.In(i)))
		}
		return grads
	}, "MatrixTriangularSolve")
	Register(eigenGrad, "SelfAdjointEigV2")
	Register(svdGrad, "Svd")
	Register(qrGrad, "Qr")
}

// matrixProduct multiplies matrices, each adjoint first if wanted.
func matrixProduct(s *op.Scope, a, b op.Output, adjointA, adjointB bool) op.Output {
	return op.BatchMatMulV2(s, a, b, op.BatchMatMulV2AdjX(adjointA), op.BatchMatMulV2AdjY(adjointB))
}

// scalars makes every number a matrix of one element.
func scalars(s *op.Scope, x op.Output) op.Output {
	last := op.Const(s, int32(-1))
	return op.ExpandDims(s, op.ExpandDims(s, x, last), last)
}

func adjointInverse(c *Call) op.Output {
	return op.MatrixInverse(c.S, c.In(0), op.MatrixInverseAdjoint(true))
}

// triangle keeps the lower or upper triangle of matrices, with the diagonal.
func triangle(s *op.Scope, a op.Output, lower bool) op.Output {
	all, none := op.Const(s, int64(-1)), op.Const(s, int64(0))
	if lower {
		return op.MatrixBandPart(s, a, all, none)
	}
	return op.MatrixBandPart(s, a, none, all)
}

// halfDiagonal halves the diagonals of matrices.
func halfDiagonal(s *op.Scope, a op.Output) op.Output {
	return op.MatrixSetDiag(s, a, op.Mul(s, op.MatrixDiagPart(s, a), number(s, a, 0.5)))
}

// adjoint transposes matrices and conjugates their elements.
func adjoint(s *op.Scope, a op.Output) op.Output {
	rank, two := op.Rank(s, a), op.Const(s, int32(2))
	one := op.Const(s, int32(1))
	batch := op.Range(s, op.Const(s, int32(0)), op.Sub(s, rank, two), one)
	order := op.ConcatV2(s, []op.Output{batch, vector(s, op.Sub(s, rank, one)), vector(s, op.Sub(s, rank, two))}, op.Const(s, int32(0)))
	return op.ConjugateTranspose(s, a, order)
}

// choleskyGrad gives a gradient that is symmetric, as the matrix is.
func choleskyGrad(c *Call) []Grad {
	s, l := c.S, c.Out(0)
	inverse := op.MatrixInverse(s, l)
	middle := triangle(s, halfDiagonal(s, matrixProduct(s, l, c.DY(0), true, false)), true)
	da := matrixProduct(s, matrixProduct(s, inverse, middle, true, false), inverse, false, false)
	return List(op.Mul(s, op.AddV2(s, da, adjoint(s, da)), number(s, da, 0.5)))
}

// solution returns the gradients of a and b given that of b, where a·x = b.
func solution(c *Call, isAdjoint bool, db op.Output) []Grad {
	s, x := c.S, c.Out(0)
	if isAdjoint {
		return List(op.Neg(s, matrixProduct(s, x, db, false, true)), db)
	}
	return List(op.Neg(s, matrixProduct(s, db, x, false, true)), db)
}

// eigenGrad gives the lower triangle of the gradient, which is the part that the operation reads.
func eigenGrad(c *Call) []Grad {
	s, last := c.S, op.Const(c.S, int32(-1))
	a, e, v := c.In(0), c.Out(0), c.Out(1)
	if !c.Node.Attrs.Bool("compute_v") {
		_, v = op.SelfAdjointEigV2(s, a)
	}
	middle := op.MatrixDiag(s, c.DY(0))
	if c.Node.Attrs.Bool("compute_v") && !c.Grad(1).IsNone() {
		gaps := op.Sub(s, op.ExpandDims(s, e, op.Const(s, int32(-2))), op.ExpandDims(s, e, last))
		inverse := op.DivNoNan(s, op.OnesLike(s, gaps), gaps)
		middle = op.AddV2(s, middle, op.Mul(s, inverse, matrixProduct(s, v, c.DY(1), true, false)))
	}
	da := matrixProduct(s, v, matrixProduct(s, middle, v, false, true), false, false)
	return List(halfDiagonal(s, triangle(s, op.AddV2(s, da, adjoint(s, da)), true)))
}

// sumTo sums a gradient over the dimensions in which x was broadcast.
func sumTo(s *op.Scope, g, x op.Output) op.Output {
	shape := op.Shape(s, x)
	axes, _ := op.BroadcastGradientArgs(s, shape, op.Shape(s, g))
	return op.Reshape(s, op.Sum(s, g, axes), shape)
}

// svdGrad follows J. Townsend, "Differentiating the singular value decomposition" (2016), for real matrices and factors
// that are as narrow as they can be.
func svdGrad(c *Call) []Grad {
	s, a := c.S, c.In(0)
	values, u, v := c.Out(0), c.Out(1), c.Out(2)
	if !c.Node.Attrs.Bool("compute_uv") {
		_, u, v = op.Svd(s, a)
		return List(matrixProduct(s, matrixProduct(s, u, op.MatrixDiag(s, c.DY(0)), false, false), v, false, true))
	}
	if a.DType().IsComplex() || c.Node.Attrs.Bool("full_matrices") {
		s.Fail(status.Unimplementedf("gradients: %s (op type: Svd) is of complex numbers or has full_matrices", c.Node.Name))
		return c.None()
	}
	squares, last := op.Square(s, values), op.Const(s, int32(-1))
	gaps := op.Sub(s, op.ExpandDims(s, squares, op.Const(s, int32(-2))), op.ExpandDims(s, squares, last))
	inverseGaps := op.DivNoNan(s, op.OnesLike(s, gaps), gaps)
	inverse := op.MatrixDiag(s, op.DivNoNan(s, op.OnesLike(s, values), values))
	diagonal := op.MatrixDiag(s, values)
	within := func(factor, d op.Output) op.Output { // what a change of a factor does in the space of its columns
		m := matrixProduct(s, factor, d, true, false)
		return op.Mul(s, inverseGaps, op.Sub(s, m, adjoint(s, m)))
	}
	outside := func(factor, d op.Output) op.Output { // and beside that space
		return op.Sub(s, d, matrixProduct(s, factor, matrixProduct(s, factor, d, true, false), false, false))
	}
	du, dv := c.DY(1), c.DY(2)
	middle := op.AddN(s, []op.Output{
		op.MatrixDiag(s, c.DY(0)),
		matrixProduct(s, within(u, du), diagonal, false, false),
		matrixProduct(s, diagonal, within(v, dv), false, false),
	})
	return List(op.AddN(s, []op.Output{
		matrixProduct(s, matrixProduct(s, u, middle, false, false), v, false, true),
		matrixProduct(s, matrixProduct(s, outside(u, du), inverse, false, false), v, false, true),
		matrixProduct(s, matrixProduct(s, u, inverse, false, false), outside(v, dv), false, true),
	}))
}

// qrGrad is for matrices that are at least as high as wide, and factors that are as narrow as they can be.
func qrGrad(c *Call) []Grad {
	s, q, r := c.S, c.Out(0), c.Out(1)
	shape := s.ShapeOf(c.In(0))
	wide := shape.RankKnown() && shape.Rank() > 1 && shape.Dim(shape.Rank()-1) > shape.Dim(shape.Rank()-2) && shape.Dim(shape.Rank()-2) >= 0
	if c.In(0).DType().IsComplex() || c.Node.Attrs.Bool("full_matrices") || wide {
		s.Fail(status.Unimplementedf("gradients: %s (op type: Qr) is of complex numbers, of matrices wider than high, or has full_matrices", c.Node.Name))
		return c.None()
	}
	m := op.Sub(s, matrixProduct(s, r, c.DY(1), false, true), matrixProduct(s, c.DY(0), q, true, false))
	lower := halfDiagonal(s, triangle(s, m, true))
	both := op.AddV2(s, lower, adjoint(s, lower)) // the lower triangle on both sides
	right := op.AddV2(s, c.DY(0), matrixProduct(s, q, both, false, false))
	return List(adjoint(s, op.MatrixTriangularSolve(s, r, adjoint(s, right), op.MatrixTriangularSolveLower(false))))
}
