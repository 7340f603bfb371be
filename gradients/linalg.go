package gradients

import (
	"github.com/weft-ml/weft/op"
)

// The rules for factorizations and solutions follow M. Giles, "Collected matrix derivative results
// for forward and reverse mode algorithmic differentiation" (2008), for every matrix of a batch.
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
}

// matrixProduct multiplies matrices, optionally with their adjoints.
func matrixProduct(s *op.Scope, a, b op.Output, adjointA, adjointB bool) op.Output {
	return op.BatchMatMulV2(s, a, b, op.BatchMatMulV2AdjX(adjointA), op.BatchMatMulV2AdjY(adjointB))
}

// scalars reshapes every number to a 1x1 matrix.
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

// choleskyGrad returns a symmetric gradient, as the matrix is symmetric.
func choleskyGrad(c *Call) []Grad {
	s, l := c.S, c.Out(0)
	inverse := op.MatrixInverse(s, l)
	middle := triangle(s, halfDiagonal(s, matrixProduct(s, l, c.DY(0), true, false)), true)
	da := matrixProduct(s, matrixProduct(s, inverse, middle, true, false), inverse, false, false)
	return List(op.Mul(s, op.AddV2(s, da, adjoint(s, da)), number(s, da, 0.5)))
}

// solution returns the gradients of a and b for a·x = b, given the gradient of b.
func solution(c *Call, isAdjoint bool, db op.Output) []Grad {
	s, x := c.S, c.Out(0)
	if isAdjoint {
		return List(op.Neg(s, matrixProduct(s, x, db, false, true)), db)
	}
	return List(op.Neg(s, matrixProduct(s, db, x, false, true)), db)
}

// sumTo sums a gradient over the dimensions in which x was broadcast.
func sumTo(s *op.Scope, g, x op.Output) op.Output {
	shape := op.Shape(s, x)
	axes, _ := op.BroadcastGradientArgs(s, shape, op.Shape(s, g))
	return op.Reshape(s, op.Sum(s, g, axes), shape)
}
