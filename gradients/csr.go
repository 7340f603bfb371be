package gradients

import (
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
)

// Sparse matrices in CSR form (compressed rows). Their gradients are sparse matrices with elements
// at the same positions.
func init() {
	Register(func(c *Call) []Grad {
		return c.first(op.CSRSparseMatrixToDense(c.S, c.DY(0), c.In(0).DType().Base()))
	}, "DenseToCSRSparseMatrix")
	Register(func(c *Call) []Grad {
		at, _, shape := op.CSRSparseMatrixToSparseTensor(c.S, c.In(0), c.DY(0).DType())
		return List(op.SparseTensorToCSRSparseMatrix(c.S, at, op.GatherNd(c.S, c.DY(0), at), shape))
	}, "CSRSparseMatrixToDense")
	Register(func(c *Call) []Grad {
		_, values, _ := op.CSRSparseMatrixToSparseTensor(c.S, c.DY(0), c.In(1).DType().Base())
		return List(op.Output{}, values, op.Output{})
	}, "SparseTensorToCSRSparseMatrix")
	Register(func(c *Call) []Grad {
		return List(op.SparseTensorToCSRSparseMatrix(c.S, c.Out(0), c.DY(1), c.Out(2)))
	}, "CSRSparseMatrixToSparseTensor")
	Register(func(c *Call) []Grad {
		t := turning{transpose: true, conj: c.Node.Attrs.Bool("conjugate")}
		return List(t.sparse(c.S, c.DY(0), c.Node.Attrs.Type("type")))
	}, "SparseMatrixTranspose")
	Register(csrProductGrad, "SparseMatrixMatMul")
	Register(csrSparseProductGrad, "SparseMatrixSparseMatMul")
}

// turning describes how a factor of a product is transformed before the multiplication.
type turning struct{ transpose, conj bool }

func (c *Call) turning(factor string) turning {
	adjoint := c.Node.Attrs.Bool("adjoint_" + factor)
	return turning{transpose: adjoint || c.Node.Attrs.Bool("transpose_"+factor), conj: adjoint}
}

// dense transforms dense matrices.
func (t turning) dense(s *op.Scope, m op.Output) op.Output {
	if t.transpose {
		m = adjoint(s, m)
	}
	if t.transpose != t.conj {
		m = conj(s, m)
	}
	return m
}

// sparse transforms sparse matrices.
func (t turning) sparse(s *op.Scope, m op.Output, dtype tensor.DType) op.Output {
	if !t.transpose {
		return m
	}
	return op.SparseMatrixTranspose(s, m, dtype, op.SparseMatrixTransposeConjugate(t.conj))
}

// csrProductGrad differentiates a sparse matrix times a dense one. For C = A·B with the transformed
// factors, the gradients are dA = dC·Bᴴ at the positions of A, and dB = Aᴴ·dC.
func csrProductGrad(c *Call) []Grad {
	s, a, dtype := c.S, c.In(0), c.In(1).DType().Base()
	result := turning{transpose: c.Node.Attrs.Bool("transpose_output"), conj: c.Node.Attrs.Bool("conjugate_output")}
	turnA, turnB := c.turning("a"), c.turning("b")
	dy, b := result.dense(s, c.DY(0)), turnB.dense(s, c.In(1))

	at, _, shape := op.CSRSparseMatrixToSparseTensor(s, a, dtype)
	columns := op.SplitV(s, at, op.Const(s, []int32{-1, 1, 1}), op.Const(s, int32(1)), 3)
	batch, row, col := nth(columns, 0), nth(columns, 1), nth(columns, 2)
	if turnA.transpose {
		row, col = col, row
	}
	rowsOf := func(m, i op.Output) op.Output {
		return op.GatherNd(s, m, op.ConcatV2(s, []op.Output{batch, i}, op.Const(s, int32(1))))
	}
	values := sumColumns(s, op.Mul(s, rowsOf(dy, row), conj(s, rowsOf(b, col))))
	if turnA.conj {
		values = conj(s, values)
	}
	da := op.SparseTensorToCSRSparseMatrix(s, at, values, shape)

	var db op.Output
	if turnA.transpose && !turnA.conj {
		db = conj(s, op.SparseMatrixMatMul(s, a, conj(s, dy)))
	} else {
		db = op.SparseMatrixMatMul(s, a, dy, op.SparseMatrixMatMulAdjointA(!turnA.conj))
	}
	return List(da, turnB.dense(s, db))
}

// csrSparseProductGrad differentiates a product of sparse matrices.
func csrSparseProductGrad(c *Call) []Grad {
	s, dtype := c.S, c.Node.Attrs.Type("type")
	turnA, turnB := c.turning("a"), c.turning("b")
	a, b := turnA.sparse(s, c.In(0), dtype), turnB.sparse(s, c.In(1), dtype)
	da := op.SparseMatrixSparseMatMul(s, c.DY(0), b, dtype, op.SparseMatrixSparseMatMulAdjointB(true))
	db := op.SparseMatrixSparseMatMul(s, a, c.DY(0), dtype, op.SparseMatrixSparseMatMulAdjointA(true))
	return List(atPlacesOf(s, c.In(0), turnA.sparse(s, da, dtype), dtype), atPlacesOf(s, c.In(1), turnB.sparse(s, db, dtype), dtype))
}

// atPlacesOf returns the elements of a sparse matrix m at the positions of another, with zeros
// where m has none.
func atPlacesOf(s *op.Scope, places, m op.Output, dtype tensor.DType) op.Output {
	at, _, shape := op.CSRSparseMatrixToSparseTensor(s, places, dtype)
	from, values, _ := op.CSRSparseMatrixToSparseTensor(s, m, dtype)
	flat := func(at op.Output) op.Output { // positions as ascending numbers
		numbers, _ := op.SparseReshape(s, at, shape, op.Const(s, []int64{-1}))
		return op.Reshape(s, numbers, op.Const(s, []int32{-1}))
	}
	withLast := func(x, last op.Output) op.Output { // so that every search finds a next element
		return op.ConcatV2(s, []op.Output{x, op.Reshape(s, last, op.Const(s, []int32{1}))}, op.Const(s, int32(0)))
	}
	want, have := flat(at), flat(from)
	zero := op.Const(s, []int32{0})
	next := op.LowerBound(s, op.ExpandDims(s, have, zero), op.ExpandDims(s, want, zero))
	next = op.Reshape(s, next, op.Const(s, []int32{-1}))
	same := op.Equal(s, op.Gather(s, withLast(have, op.Const(s, int64(-1))), next), want)
	found := op.Gather(s, withLast(values, op.ConstOf(s, dtype, 0)), next)
	return op.SparseTensorToCSRSparseMatrix(s, at, op.SelectV2(s, same, found, op.ZerosLike(s, found)), shape)
}
