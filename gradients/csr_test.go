package gradients_test

import (
	"fmt"
	"testing"

	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
)

// csr returns one sparse 2×3 matrix with four values, or a batch.
func csr(s *scope, values op.Output, batch bool) op.Output {
	at, shape := [][]int64{{0, 1}, {0, 2}, {1, 0}, {1, 2}}, []int64{2, 3}
	if batch {
		at, shape = [][]int64{{0, 0, 1}, {0, 1, 2}, {1, 0, 0}, {1, 0, 2}}, []int64{2, 2, 3}
	}
	return op.SparseTensorToCSRSparseMatrix(s, op.Const(s, at), values, op.Const(s, shape))
}

func TestSparseMatrices(t *testing.T) {
	c128, f64 := tensor.Complex128, tensor.Float64
	checkRules(t, []ruleCase{
		{"DenseToCSRSparseMatrix", []input{in(2, 3)}, one(func(s *scope, x op.Output) op.Output {
			m := op.DenseToCSRSparseMatrix(s, x, op.Const(s, [][]int64{{0, 1}, {1, 0}, {1, 2}}))
			return op.Square(s, op.CSRSparseMatrixToDense(s, m, f64))
		})},
		{"CSRSparseMatrixToDense", []input{in(4)}, one(func(s *scope, x op.Output) op.Output {
			return op.Square(s, op.CSRSparseMatrixToDense(s, csr(s, x, true), f64))
		})},
		{"SparseTensorToCSRSparseMatrix", []input{in(4)}, one(func(s *scope, x op.Output) op.Output {
			_, y, _ := op.CSRSparseMatrixToSparseTensor(s, csr(s, x, false), f64)
			return op.Square(s, y)
		})},
		{"CSRSparseMatrixToSparseTensor", []input{in(4).of(c128)}, one(func(s *scope, x op.Output) op.Output {
			_, y, _ := op.CSRSparseMatrixToSparseTensor(s, csr(s, x, true), c128)
			return op.Square(s, y)
		})},
		{"SparseMatrixTranspose", []input{in(4)}, one(func(s *scope, x op.Output) op.Output {
			return op.Square(s, op.CSRSparseMatrixToDense(s, op.SparseMatrixTranspose(s, csr(s, x, false), f64), f64))
		})},
		{"SparseMatrixTranspose/conjugate", []input{in(4).of(c128)}, one(func(s *scope, x op.Output) op.Output {
			m := op.SparseMatrixTranspose(s, csr(s, x, true), c128, op.SparseMatrixTransposeConjugate(true))
			return op.Square(s, op.CSRSparseMatrixToDense(s, m, c128))
		})},
	})
}

// turns are the ways to turn a factor: as it is, transposed, adjoint.
var turns = []string{"as is", "transposed", "adjoint"}

func TestSparseProducts(t *testing.T) {
	c128 := tensor.Complex128
	// shape of the right factor of a 2×3 matrix
	shapeB := func(a, b int, batch bool) tensor.Shape {
		rows, cols := int64(3), int64(2)
		if a != 0 {
			rows = 2
		}
		if b != 0 {
			rows, cols = cols, rows
		}
		if batch {
			return tensor.Shape{2, rows, cols}
		}
		return tensor.Shape{rows, cols}
	}
	for a, nameA := range turns {
		for b, nameB := range turns {
			for _, result := range []bool{false, true} {
				name := fmt.Sprintf("SparseMatrixMatMul/%s %s turned %v", nameA, nameB, result)
				checkRules(t, []ruleCase{{name, []input{in(4).of(c128), in(shapeB(a, b, result)...).of(c128)}, two(func(s *scope, x, y op.Output) op.Output {
					return op.SparseMatrixMatMul(s, csr(s, x, result), y,
						op.SparseMatrixMatMulTransposeA(a == 1), op.SparseMatrixMatMulAdjointA(a == 2),
						op.SparseMatrixMatMulTransposeB(b == 1), op.SparseMatrixMatMulAdjointB(b == 2),
						op.SparseMatrixMatMulTransposeOutput(result), op.SparseMatrixMatMulConjugateOutput(result && a == 0))
				})}})
			}
			name := fmt.Sprintf("SparseMatrixSparseMatMul/%s %s", nameA, nameB)
			checkRules(t, []ruleCase{{name, []input{in(4).of(c128), in(4).of(c128)}, two(func(s *scope, x, y op.Output) op.Output {
				right := csr(s, y, false)
				if (a == 0) == (b == 0) { // 2×3 times 3×2
					right = op.SparseMatrixTranspose(s, right, c128)
				}
				m := op.SparseMatrixSparseMatMul(s, csr(s, x, false), right, c128,
					op.SparseMatrixSparseMatMulTransposeA(a == 1), op.SparseMatrixSparseMatMulAdjointA(a == 2),
					op.SparseMatrixSparseMatMulTransposeB(b == 1), op.SparseMatrixSparseMatMulAdjointB(b == 2))
				return op.Square(s, op.CSRSparseMatrixToDense(s, m, c128))
			})}})
		}
	}
}
