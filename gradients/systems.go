package gradients

import (
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
)

// Banded linear systems, least squares and matrix square roots.
func init() {
	Register(squareRootGrad, "MatrixSquareRoot")
	Register(leastSquaresGrad, "MatrixSolveLs")
	Register(bandedSolveGrad, "BandedTriangularSolve")
	Register(tridiagonalSolveGrad, "TridiagonalSolve")
	Register(tridiagonalProductGrad, "TridiagonalMatMul")
}

// squareRootGrad solves Rᴴ·X + X·Rᴴ = dR for X, as one linear system for the elements of X.
func squareRootGrad(c *Call) []Grad {
	s, r, dr := c.S, c.Out(0), c.DY(0)
	one := op.MatrixDiag(s, op.OnesLike(s, op.MatrixDiagPart(s, r)))
	rt := adjoint(s, r)
	shape := op.Shape(s, r)
	size, zero := innerDims(s, r, 1), op.Const(s, int32(0))
	batch := op.Slice(s, shape, op.Const(s, []int32{0}), op.Sub(s, vector(s, op.Rank(s, r)), op.Const(s, []int32{2})))
	all := op.Mul(s, size, size)
	product := func(a, b op.Output) op.Output { // Kronecker product
		k := op.Einsum(s, []op.Output{a, b}, "...ij,...kl->...ikjl")
		return op.Reshape(s, k, op.ConcatV2(s, []op.Output{batch, all, all}, zero))
	}
	system := op.AddV2(s, product(rt, one), product(one, conj(s, r)))
	x := op.MatrixSolve(s, system, op.Reshape(s, dr, op.ConcatV2(s, []op.Output{batch, all, op.Const(s, []int32{1})}, zero)))
	return List(op.Reshape(s, x, shape))
}

// leastSquaresGrad differentiates x, which is (aᴴa + λ)⁻¹aᴴb if a has at least as many rows as
// columns, and aᴴ(aaᴴ + λ)⁻¹b otherwise. In both cases db is the solution for aᴴ and dx.
func leastSquaresGrad(c *Call) []Grad {
	s, a, b, x, dx := c.S, c.In(0), c.In(1), c.Out(0), c.DY(0)
	if !c.Node.Attrs.Bool("fast") {
		s.Fail(status.InvalidArgumentf("Gradient not defined for fast=False"))
		return c.None()
	}
	lambda := op.Cast(s, c.In(2), a.DType().Base())
	db := op.MatrixSolveLs(s, adjoint(s, a), dx, c.In(2))
	solve := func(s *op.Scope, gram, rhs op.Output) op.Output {
		diagonal := op.AddV2(s, op.MatrixDiagPart(s, gram), lambda)
		return op.MatrixSolve(s, op.MatrixSetDiag(s, gram, diagonal), rhs)
	}
	high := func(s *op.Scope) []op.Output {
		rest := op.Sub(s, b, matrixProduct(s, a, x, false, false))
		return []op.Output{matrixProduct(s, rest, solve(s, matrixProduct(s, a, a, true, false), dx), false, true)}
	}
	wide := func(s *op.Scope) []op.Output {
		rest := op.Sub(s, dx, matrixProduct(s, a, db, true, false))
		return []op.Output{matrixProduct(s, solve(s, matrixProduct(s, a, a, false, true), b), rest, false, true)}
	}
	dims := op.Unpack(s, innerDims(s, a, 2), 2)
	outer := op.Cond(s, op.GreaterEqual(s, nth(dims, 0), nth(dims, 1)), high, wide)
	return List(op.Sub(s, nth(outer, 0), matrixProduct(s, db, x, false, true)), db, op.Output{})
}

// bandedSolveGrad keeps the bands of the gradient of the full matrix.
func bandedSolveGrad(c *Call) []Grad {
	s, a, x := c.S, c.In(0), c.Out(0)
	isAdjoint, lower := c.Node.Attrs.Bool("adjoint"), c.Node.Attrs.Bool("lower")
	db := op.BandedTriangularSolve(s, a, c.DY(0), op.BandedTriangularSolveLower(lower), op.BandedTriangularSolveAdjoint(!isAdjoint))
	left, right := db, x
	if isAdjoint {
		left, right = x, db
	}
	whole := op.Neg(s, matrixProduct(s, left, right, false, true))
	zero, bands := op.Const(s, []int32{0}), op.Sub(s, op.Slice(s, innerDims(s, a, 2), op.Const(s, []int32{0}), op.Const(s, []int32{1})), op.Const(s, []int32{1}))
	which := []op.Output{zero, bands}
	if lower {
		which = []op.Output{op.Neg(s, bands), zero}
	}
	da := op.MatrixDiagPartV3(s, whole, op.ConcatV2(s, which, op.Const(s, int32(0))), number(s, a, 0), op.MatrixDiagPartV3Align("LEFT_RIGHT"))
	return List(sumTo(s, da, a), sumTo(s, db, c.In(1)))
}

// tridiagonalSolveGrad keeps the three diagonals of the gradient of the full matrix.
func tridiagonalSolveGrad(c *Call) []Grad {
	s := c.S
	diagonals := op.Unpack(s, conj(s, c.In(0)), 3, op.UnpackAxis(-2))
	above, middle, below := nth(diagonals, 0), nth(diagonals, 1), nth(diagonals, 2)
	columns := func(d op.Output, up int32) op.Output { // shifted, as rows of one column
		moved := moveRows(s, op.ExpandDims(s, d, op.Const(s, int32(-1))), up)
		return op.Squeeze(s, moved, op.SqueezeSqueezeDims([]int64{-1}))
	}
	turned := op.Pack(s, []op.Output{columns(below, 1), middle, columns(above, -1)}, op.PackAxis(-2))
	db := output(c.S.Add("TridiagonalSolve", args(turned, c.DY(0)), opdef.Attrs{
		"partial_pivoting": c.Node.Attrs.Bool("partial_pivoting"), "perturb_singular": c.Node.Attrs.Bool("perturb_singular"),
	}), 0)
	x := conj(s, c.Out(0))
	of := func(x op.Output) op.Output { return op.Neg(s, sumColumns(s, op.Mul(s, db, x))) }
	return List(op.Pack(s, []op.Output{of(moveRows(s, x, 1)), of(x), of(moveRows(s, x, -1))}, op.PackAxis(-2)), db)
}

func tridiagonalProductGrad(c *Call) []Grad {
	s, dy := c.S, c.DY(0)
	// a diagonal as a factor of the rows
	column := func(i int) op.Output { return adjoint(s, c.In(i)) }
	rhs := conj(s, c.In(3))
	of := func(x op.Output) op.Output {
		return op.ExpandDims(s, sumColumns(s, op.Mul(s, x, dy)), op.Const(s, int32(-2)))
	}
	dRHS := op.AddN(s, []op.Output{
		moveRows(s, op.Mul(s, column(0), dy), -1), op.Mul(s, column(1), dy), moveRows(s, op.Mul(s, column(2), dy), 1),
	})
	return List(of(moveRows(s, rhs, 1)), of(rhs), of(moveRows(s, rhs, -1)), dRHS)
}

// moveRows shifts the rows of matrices up by one, or down by one if up is -1, and fills in zeros.
func moveRows(s *op.Scope, x op.Output, up int32) op.Output {
	begin, end, pad := []int32{0, 1, 0}, []int32{0, 0, 0}, [][]int32{{0, 1}, {0, 0}}
	mask := int64(2)
	if up < 0 {
		begin, end, pad, mask = []int32{0, 0, 0}, []int32{0, -1, 0}, [][]int32{{1, 0}, {0, 0}}, 0
	}
	kept := op.StridedSlice(s, x, op.Const(s, begin), op.Const(s, end), op.Const(s, []int32{1, 1, 1}),
		op.StridedSliceEllipsisMask(1), op.StridedSliceBeginMask(4), op.StridedSliceEndMask(4|mask))
	outer := op.Pack(s, []op.Output{op.Sub(s, op.Rank(s, x), op.Const(s, int32(2))), op.Const(s, int32(2))})
	none := op.Fill(s, outer, op.Const(s, int32(0)))
	return op.Pad(s, kept, op.ConcatV2(s, []op.Output{none, op.Const(s, pad)}, op.Const(s, int32(0))))
}

func sumColumns(s *op.Scope, x op.Output) op.Output { return op.Sum(s, x, op.Const(s, []int32{-1})) }
