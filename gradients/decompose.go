package gradients

import "github.com/weft-ml/weft/op"

// Matrix decompositions. Factors may not be unique: a vector can be scaled by a unit number, and
// equal eigenvalues share a subspace. The gradient is correct for functions that do not depend on
// the choice.
func init() {
	Register(eigenGrad, "SelfAdjointEigV2")
	Register(generalEigenGrad, "Eig")
	Register(svdGrad, "Svd")
	Register(qrGrad, "Qr")
}

// eigenGrad returns the lower triangle of the gradient, because the operation reads only that
// triangle.
func eigenGrad(c *Call) []Grad {
	s := c.S
	a, e, v := c.In(0), c.Out(0), c.Out(1)
	if !c.Node.Attrs.Bool("compute_v") {
		_, v = op.SelfAdjointEigV2(s, a)
	}
	middle := op.MatrixDiag(s, c.DY(0))
	if c.Node.Attrs.Bool("compute_v") && !c.Grad(1).IsNone() {
		middle = op.AddV2(s, middle, op.Mul(s, inverseGaps(s, e), matrixProduct(s, v, c.DY(1), true, false)))
	}
	da := matrixProduct(s, v, matrixProduct(s, middle, v, false, true), false, false)
	return List(halfDiagonal(s, triangle(s, op.AddV2(s, da, adjoint(s, da)), true)))
}

// inverseGaps returns, for every vector e, the matrix of 1/(e[j]-e[i]), with zeros for equal
// values.
func inverseGaps(s *op.Scope, e op.Output) op.Output {
	gaps := op.Sub(s, op.ExpandDims(s, e, op.Const(s, int32(-2))), op.ExpandDims(s, e, op.Const(s, int32(-1))))
	return op.DivNoNan(s, op.OnesLike(s, gaps), gaps)
}

// generalEigenGrad follows C. Boeddeker et al., "On the computation of complex-valued gradients
// with application to statistically optimum beamforming" (2017), equation 4.77, for normalized
// eigenvectors.
func generalEigenGrad(c *Call) []Grad {
	s, a, e, v := c.S, c.In(0), c.Out(0), c.Out(1)
	withV := c.Node.Attrs.Bool("compute_v")
	if !withV {
		_, v = op.Eig(s, a, e.DType())
	}
	middle := op.MatrixDiag(s, c.DY(0))
	if withV && !c.Grad(1).IsNone() {
		turn := matrixProduct(s, v, c.DY(1), true, false)
		length := op.MatrixDiag(s, op.Cast(s, realOf(s, op.MatrixDiagPart(s, turn)), turn.DType()))
		turn = op.Sub(s, turn, matrixProduct(s, matrixProduct(s, v, v, true, false), length, false, false))
		middle = op.AddV2(s, middle, op.Mul(s, op.Conj(s, inverseGaps(s, e)), turn))
	}
	vt := adjoint(s, v)
	da := op.MatrixSolve(s, vt, matrixProduct(s, middle, vt, false, false))
	if !a.DType().IsComplex() {
		da = realOf(s, da)
	}
	return List(da)
}

// svdGrad follows J. Townsend, "Differentiating the singular value decomposition" (2016); for
// complex matrices Z.-Q. Wan and S.-X. Zhang, "Automatic differentiation for complex valued SVD"
// (2019).
func svdGrad(c *Call) []Grad {
	s, a := c.S, c.In(0)
	values, dValues := c.Out(0), c.DY(0)
	if a.DType().IsComplex() { // singular values are always real
		dValues = op.Cast(s, realOf(s, dValues), a.DType())
	}
	dValues = op.MatrixDiag(s, dValues)
	if !c.Node.Attrs.Bool("compute_uv") {
		_, u, v := op.Svd(s, a)
		return List(matrixProduct(s, matrixProduct(s, u, dValues, false, false), v, false, true))
	}
	width := innerDims(s, c.Out(0), 1)
	u, du := thinFactor(s, c.Out(1), c.DY(1), width)
	v, dv := thinFactor(s, c.Out(2), c.DY(2), width)
	gaps := inverseGaps(s, op.Square(s, values))
	// the change of a factor within its column space
	within := func(factor, d op.Output) op.Output {
		m := matrixProduct(s, factor, d, true, false)
		return op.Mul(s, gaps, op.Sub(s, m, adjoint(s, m)))
	}
	outside := func(factor, d op.Output) op.Output { // and orthogonal to it
		return op.Sub(s, d, matrixProduct(s, factor, matrixProduct(s, factor, d, true, false), false, false))
	}
	inverse, diagonal := op.MatrixDiag(s, op.DivNoNan(s, op.OnesLike(s, values), values)), op.MatrixDiag(s, values)
	middle := []op.Output{
		dValues,
		matrixProduct(s, within(u, du), diagonal, false, false),
		matrixProduct(s, diagonal, within(v, dv), false, false),
	}
	if a.DType().IsComplex() { // u and v share a phase
		turn := op.MatrixDiagPart(s, matrixProduct(s, v, dv, true, false))
		turn = op.Mul(s, op.Sub(s, op.Conj(s, turn), turn), number(s, turn, 0.5))
		middle = append(middle, op.MatrixDiag(s, op.DivNoNan(s, turn, values)))
	}
	return List(op.AddN(s, []op.Output{
		matrixProduct(s, matrixProduct(s, u, op.AddN(s, middle), false, false), v, false, true),
		matrixProduct(s, matrixProduct(s, outside(u, du), inverse, false, false), v, false, true),
		matrixProduct(s, matrixProduct(s, u, inverse, false, false), outside(v, dv), false, true),
	}))
}

// thinFactor returns the first columns of a factor with orthonormal columns, and their gradient. A
// full factor has more columns, which stay orthogonal to the first ones, so their gradient
// contributes to that of the first columns.
func thinFactor(s *op.Scope, q, dq, width op.Output) (thin, dThin op.Output) {
	thin, rest := splitColumns(s, q, width)
	dThin, dRest := splitColumns(s, dq, width)
	turned := matrixProduct(s, rest, matrixProduct(s, dRest, thin, true, false), false, false)
	return thin, op.Sub(s, dThin, turned)
}

// splitColumns splits matrices after width columns; width is a vector of one element.
func splitColumns(s *op.Scope, a, width op.Output) (left, right op.Output) {
	none, stride := op.Const(s, []int32{0, 0}), op.Const(s, []int32{1, 1})
	at := op.ConcatV2(s, []op.Output{op.Const(s, []int32{0}), width}, op.Const(s, int32(0)))
	left = op.StridedSlice(s, a, none, at, stride, op.StridedSliceEllipsisMask(1))
	right = op.StridedSlice(s, a, at, none, stride, op.StridedSliceEllipsisMask(1), op.StridedSliceEndMask(2))
	return left, right
}

// firstRows returns the first width rows of matrices; width is a vector of one element.
func firstRows(s *op.Scope, a, width op.Output) op.Output {
	end := op.ConcatV2(s, []op.Output{op.Const(s, []int32{0}), width, op.Const(s, []int32{0})}, op.Const(s, int32(0)))
	return op.StridedSlice(s, a, op.Const(s, []int32{0, 0, 0}), end, op.Const(s, []int32{1, 1, 1}),
		op.StridedSliceEllipsisMask(1), op.StridedSliceEndMask(4))
}

// qrGrad follows D. A. O. Roberts and L. R. Roberts, "QR and LQ decomposition matrix
// backpropagation algorithms for square, wide, and deep, real or complex, matrices and their
// software implementation" (2020). A wide matrix [x, y] is handled as the decomposition of the
// square x and the product y = q·r.
func qrGrad(c *Call) []Grad {
	s, a := c.S, c.In(0)
	width := op.Min(s, innerDims(s, a, 2), op.Const(s, int32(0)), op.MinKeepDims(true))
	q, dq := thinFactor(s, c.Out(0), c.DY(0), width)
	r, _ := splitColumns(s, firstRows(s, c.Out(1), width), width)
	dr, dBeside := splitColumns(s, firstRows(s, c.DY(1), width), width)
	_, y := splitColumns(s, a, width)
	dq = op.AddV2(s, dq, matrixProduct(s, y, dBeside, false, true))

	m := op.Sub(s, matrixProduct(s, r, dr, false, true), matrixProduct(s, dq, q, true, false))
	lower := halfDiagonal(s, triangle(s, m, true))
	both := op.AddV2(s, lower, adjoint(s, lower)) // the lower triangle on both sides
	right := op.AddV2(s, dq, matrixProduct(s, q, both, false, false))
	dx := adjoint(s, op.MatrixTriangularSolve(s, r, adjoint(s, right), op.MatrixTriangularSolveLower(false)))
	return List(op.ConcatV2(s, []op.Output{dx, matrixProduct(s, q, dBeside, false, false)}, op.Const(s, int32(-1))))
}
