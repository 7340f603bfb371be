package gradients_test

import (
	"testing"

	"github.com/weft-ml/weft/gradients"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
)

func TestSquareRoots(t *testing.T) {
	c128 := tensor.Complex128
	checkRules(t, []ruleCase{
		{"MatrixSquareRoot", []input{in(2, 3, 3)}, one(func(s *scope, x op.Output) op.Output { return op.MatrixSquareRoot(s, symmetric(s, x, 3)) })},
		{"MatrixSquareRoot/not symmetric", []input{in(3, 3)}, one(func(s *scope, x op.Output) op.Output {
			return op.MatrixSquareRoot(s, op.Mul(s, regular(s, x, 3), op.Const(s, 2.0)))
		})},
		{"MatrixSquareRoot/complex", []input{in(2, 3, 3).of(c128)}, one(func(s *scope, x op.Output) op.Output {
			return op.MatrixSquareRoot(s, outer(s, x, x))
		})},
	})
}

func TestLeastSquares(t *testing.T) {
	c128 := tensor.Complex128
	solve := func(l2 float64) func(s *scope, x, y op.Output) op.Output {
		return func(s *scope, x, y op.Output) op.Output { return op.MatrixSolveLs(s, x, y, op.Const(s, l2)) }
	}
	checkRules(t, []ruleCase{
		{"MatrixSolveLs", []input{in(2, 4, 3), in(2, 4, 2)}, two(solve(0.1))},
		{"MatrixSolveLs/plain", []input{in(4, 2), in(4, 2)}, two(solve(0))},
		{"MatrixSolveLs/wide", []input{in(2, 2, 3), in(2, 2, 2)}, two(solve(0.1))},
		{"MatrixSolveLs/wide and plain", []input{in(2, 3), in(2, 2)}, two(solve(0))},
		{"MatrixSolveLs/complex", []input{in(4, 3).of(c128), in(4, 2).of(c128)}, two(solve(0.1))},
		{"MatrixSolveLs/complex wide", []input{in(3, 4).of(c128), in(3, 2).of(c128)}, two(solve(0.1))},
	})
	s := op.NewScope()
	x := op.Const(s, [][]float64{{1}})
	gradients.Compute(s, outs{op.MatrixSolveLs(s, x, x, op.Const(s, 0.0), op.MatrixSolveLsFast(false))}, outs{x})
	if s.Err() == nil {
		t.Error("the gradient of the slow way is not refused")
	}
}

func TestBands(t *testing.T) {
	c128 := tensor.Complex128
	bands := in(2, 3, 4).within(0.5, 1)
	product := func(s *scope, x []op.Output) op.Output { return op.TridiagonalMatMul(s, x[0], x[1], x[2], x[3]) }
	checkRules(t, []ruleCase{
		{"BandedTriangularSolve", []input{bands, in(4, 2)}, two(func(s *scope, x, y op.Output) op.Output { return op.BandedTriangularSolve(s, x, y) })},
		{"BandedTriangularSolve/upper", []input{in(2, 4).within(0.5, 1), in(2, 4, 2)}, two(func(s *scope, x, y op.Output) op.Output {
			return op.BandedTriangularSolve(s, x, y, op.BandedTriangularSolveLower(false))
		})},
		{"BandedTriangularSolve/adjoint", []input{in(2, 4).of(c128).within(0.5, 1), in(4, 2).of(c128)}, two(func(s *scope, x, y op.Output) op.Output {
			return op.BandedTriangularSolve(s, x, y, op.BandedTriangularSolveAdjoint(true))
		})},
		{"TridiagonalSolve", []input{bands, in(2, 4, 2)}, two(func(s *scope, x, y op.Output) op.Output { return op.TridiagonalSolve(s, x, y) })},
		{"TridiagonalSolve/complex", []input{in(3, 4).of(c128), in(4, 2).of(c128)}, two(func(s *scope, x, y op.Output) op.Output {
			return op.TridiagonalSolve(s, x, y, op.TridiagonalSolvePartialPivoting(false))
		})},
		{"TridiagonalMatMul", []input{in(2, 1, 4), in(2, 1, 4), in(2, 1, 4), in(2, 4, 3)}, all(product)},
		{"TridiagonalMatMul/complex", []input{in(1, 3).of(c128), in(1, 3).of(c128), in(1, 3).of(c128), in(3, 2).of(c128)}, all(product)},
	})
}
