package gradients

import "github.com/weft-ml/weft/op"

// The gradient of a sparse tensor is that of its values. Indices and shapes have none.
func init() {
	Register(func(c *Call) []Grad {
		s := c.S
		count := op.Size(s, c.In(1))
		// Reordering the positions of the values shows where each value was moved.
		_, order := op.SparseReorder(s, c.In(0), op.Range(s, op.Const(s, int32(0)), count, op.Const(s, int32(1))), c.In(2))
		return List(op.Output{}, op.Gather(s, c.DY(1), op.InvertPermutation(s, order)), op.Output{})
	}, "SparseReorder")
	Register(func(c *Call) []Grad {
		s, dy := c.S, c.DY(0)
		values := op.GatherNd(s, dy, indexRows(s, c.In(0), c.In(1)))
		values = op.Reshape(s, values, op.Shape(s, c.In(2)))
		rest := op.Sub(s, sumAll(s, dy), sumAll(s, op.GatherNd(s, dy, indexRows(s, c.In(0), c.In(1)))))
		return List(op.Output{}, op.Output{}, values, rest)
	}, "SparseToDense")
	Register(func(c *Call) []Grad {
		a, b := op.SparseAddGrad(c.S, c.DY(1), c.In(0), c.In(3), c.Out(0))
		grads := c.None()
		grads[1], grads[4] = Of(a), Of(b)
		return grads
	}, "SparseAdd")
	Register(func(c *Call) []Grad {
		values, rest := op.SparseFillEmptyRowsGrad(c.S, c.Out(3), c.DY(1))
		return List(op.Output{}, values, op.Output{}, rest)
	}, "SparseFillEmptyRows")
	Register(func(c *Call) []Grad {
		grads := c.None()
		grads[1] = Of(op.SparseSliceGrad(c.S, c.DY(1), c.In(0), c.In(3), c.Out(0)))
		return grads
	}, "SparseSlice")
	Register(sparseMatMulGrad, "SparseTensorDenseMatMul")
}

// indexRows returns indices as a matrix of rows. Indices of a vector may be a scalar or a vector.
func indexRows(s *op.Scope, indices, shape op.Output) op.Output {
	return op.Reshape(s, indices, op.ConcatV2(s, []op.Output{op.Const(s, []int32{-1}), vector(s, op.Size(s, shape))}, op.Const(s, int32(0))))
}

func sumAll(s *op.Scope, x op.Output) op.Output {
	return op.Sum(s, op.Reshape(s, x, op.Const(s, []int32{-1})), op.Const(s, []int32{0}))
}

// sparseMatMulGrad returns the gradients of the values of the sparse matrix and of the dense
// matrix.
func sparseMatMulGrad(c *Call) []Grad {
	s, dy, b := c.S, c.DY(0), c.In(3)
	adjointA, adjointB := c.Node.Attrs.Bool("adjoint_a"), c.Node.Attrs.Bool("adjoint_b")
	db := op.SparseTensorDenseMatMul(s, c.In(0), c.In(1), c.In(2), dy, op.SparseTensorDenseMatMulAdjointA(!adjointA))
	if adjointB {
		db = adjoint(s, db)
		b = adjoint(s, b)
	}
	column := func(i int32) op.Output {
		return op.Reshape(s, op.Slice(s, c.In(0), op.Const(s, []int32{0, i}), op.Const(s, []int32{-1, 1})), op.Const(s, []int32{-1}))
	}
	rows, cols := column(0), column(1)
	if adjointA {
		rows, cols = cols, rows
	}
	parts := op.Mul(s, op.Gather(s, dy, rows), conj(s, op.Gather(s, b, cols)))
	da := op.Sum(s, parts, op.Const(s, []int32{1}))
	if adjointA {
		da = conj(s, da)
	}
	return List(op.Output{}, da, op.Output{}, db)
}
