package gradients_test

import (
	"testing"

	"github.com/weft-ml/weft/gradients"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
)

// regular returns a matrix that is far from singular.
func regular(s *scope, x op.Output, n int) op.Output {
	eye := make([][]float64, n)
	for i := range eye {
		eye[i] = make([]float64, n)
		eye[i][i] = float64(2 + i)
	}
	return op.AddV2(s, x, op.Const(s, eye))
}

// symmetric returns a symmetric, positive definite matrix.
func symmetric(s *scope, x op.Output, n int) op.Output {
	return regular(s, op.BatchMatMulV2(s, x, x, op.BatchMatMulV2AdjY(true)), n)
}

func TestMatrices(t *testing.T) {
	checkRules(t, []ruleCase{
		{"MatrixInverse", []input{in(2, 3, 3)}, one(func(s *scope, x op.Output) op.Output { return op.MatrixInverse(s, regular(s, x, 3)) })},
		{"MatrixInverse/adjoint", []input{in(3, 3)}, one(func(s *scope, x op.Output) op.Output {
			return op.MatrixInverse(s, regular(s, x, 3), op.MatrixInverseAdjoint(true))
		})},
		{"MatrixDeterminant", []input{in(2, 3, 3)}, one(func(s *scope, x op.Output) op.Output { return op.MatrixDeterminant(s, regular(s, x, 3)) })},
		{"LogMatrixDeterminant", []input{in(2, 3, 3)}, one(func(s *scope, x op.Output) op.Output {
			_, log := op.LogMatrixDeterminant(s, regular(s, x, 3))
			return log
		})},
		{"Cholesky", []input{in(2, 3, 3)}, one(func(s *scope, x op.Output) op.Output { return op.Cholesky(s, symmetric(s, x, 3)) })},
		{"MatrixSolve", []input{in(2, 3, 3), in(2, 3, 2)}, two(func(s *scope, x, y op.Output) op.Output { return op.MatrixSolve(s, regular(s, x, 3), y) })},
		{"MatrixSolve/adjoint", []input{in(3, 3), in(3, 2)}, two(func(s *scope, x, y op.Output) op.Output {
			return op.MatrixSolve(s, regular(s, x, 3), y, op.MatrixSolveAdjoint(true))
		})},
		{"MatrixTriangularSolve", []input{in(3, 3), in(2, 3, 2)}, two(func(s *scope, x, y op.Output) op.Output {
			return op.MatrixTriangularSolve(s, regular(s, x, 3), y)
		})},
		{"MatrixTriangularSolve/upper adjoint", []input{in(3, 3), in(3, 2)}, two(func(s *scope, x, y op.Output) op.Output {
			return op.MatrixTriangularSolve(s, regular(s, x, 3), y, op.MatrixTriangularSolveLower(false), op.MatrixTriangularSolveAdjoint(true))
		})},
		{"SelfAdjointEigV2", []input{in(3, 3)}, func(s *scope, x []op.Output) []op.Output {
			e, v := op.SelfAdjointEigV2(s, symmetric(s, x[0], 3))
			return outs{e, op.Square(s, v)} // the sign is arbitrary
		}},
		{"SelfAdjointEigV2/values only", []input{in(2, 3, 3)}, func(s *scope, x []op.Output) []op.Output {
			e, _ := op.SelfAdjointEigV2(s, symmetric(s, x[0], 3), op.SelfAdjointEigV2ComputeV(false))
			return outs{e}
		}},
	})
}

func TestResizedImages(t *testing.T) {
	f32 := in(1, 3, 4, 2).of(tensor.Float32)
	boxes := [][]float32{{0.1, 0.15, 0.85, 0.9}, {0.3, 0.2, 0.6, 0.75}}
	checkRules(t, []ruleCase{
		{"ResizeBilinear", []input{f32}, one(func(s *scope, x op.Output) op.Output { return op.ResizeBilinear(s, x, ints(s, 5, 3)) })},
		{"ResizeBilinear/centers", []input{f32}, one(func(s *scope, x op.Output) op.Output {
			return op.ResizeBilinear(s, x, ints(s, 5, 3), op.ResizeBilinearHalfPixelCenters(true))
		})},
		{"ResizeBicubic", []input{f32}, one(func(s *scope, x op.Output) op.Output { return op.ResizeBicubic(s, x, ints(s, 5, 3)) })},
		{"ResizeNearestNeighbor", []input{in(1, 3, 4, 2)}, one(func(s *scope, x op.Output) op.Output {
			return op.ResizeNearestNeighbor(s, x, ints(s, 5, 3))
		})},
		{"ScaleAndTranslate", []input{f32}, one(func(s *scope, x op.Output) op.Output {
			return op.ScaleAndTranslate(s, x, ints(s, 5, 3), op.Const(s, []float32{1.5, 0.75}), op.Const(s, []float32{0.1, 0.2}))
		})},
		{"CropAndResize", []input{f32}, one(func(s *scope, x op.Output) op.Output {
			return op.CropAndResize(s, x, op.Const(s, boxes), ints(s, 0, 0), ints(s, 2, 3))
		})},
	})
}

func TestColors(t *testing.T) {
	pixels := in(2, 7, 3).within(0, 1)
	pixels.values = []float64{ // all orders of the channels
		0.9, 0.5, 0.2, 0.9, 0.2, 0.5, 0.5, 0.9, 0.2, 0.2, 0.9, 0.5, 0.5, 0.2, 0.9, 0.2, 0.5, 0.9, 0.4, 0.6, 0.7,
	}
	checkRules(t, []ruleCase{{"RGBToHSV", []input{pixels}, one(op.RGBToHSV)}})
}

// TestProjections rotates and shifts images by whole pixels, where the gradient is exact.
func TestProjections(t *testing.T) {
	image := in(2, 3, 3, 2)
	turns := [][]float32{{0, 1, 0, -1, 0, 2, 0, 0}, {1, 0, 1, 0, 1, 0, 0, 0}}
	checkRules(t, []ruleCase{
		{"ImageProjectiveTransform", []input{image}, one(func(s *scope, x op.Output) op.Output {
			return op.ImageProjectiveTransform(s, x, op.Const(s, turns), "NEAREST")
		})},
		{"ImageProjectiveTransformV2", []input{image}, one(func(s *scope, x op.Output) op.Output {
			return op.ImageProjectiveTransformV2(s, x, op.Const(s, turns), ints(s, 3, 3), "BILINEAR")
		})},
		{"ImageProjectiveTransformV3", []input{image}, one(func(s *scope, x op.Output) op.Output {
			return op.ImageProjectiveTransformV3(s, x, op.Const(s, turns[:1]), ints(s, 3, 3), op.Const(s, float32(7)), "NEAREST")
		})},
	})
}

func TestSparseTensors(t *testing.T) {
	at := func(s *scope, v ...[]int64) op.Output { return op.Const(s, v) }
	shape := func(s *scope, v ...int64) op.Output { return op.Const(s, v) }
	checkRules(t, []ruleCase{
		{"SparseReorder", []input{in(3)}, one(func(s *scope, x op.Output) op.Output {
			_, v := op.SparseReorder(s, at(s, []int64{1, 1}, []int64{0, 2}, []int64{1, 0}), x, shape(s, 2, 3))
			return v
		})},
		{"SparseToDense", []input{in(2), in()}, two(func(s *scope, x, y op.Output) op.Output {
			return op.SparseToDense(s, at(s, []int64{0, 1}, []int64{1, 0}), shape(s, 2, 2), x, y)
		})},
		{"SparseToDense/vector", []input{in(2), in()}, two(func(s *scope, x, y op.Output) op.Output {
			return op.SparseToDense(s, shape(s, 0, 2), shape(s, 4), x, y)
		})},
		{"SparseAdd", []input{in(2), in(2)}, two(func(s *scope, x, y op.Output) op.Output {
			_, v, _ := op.SparseAdd(s, at(s, []int64{0}, []int64{2}), x, shape(s, 4), at(s, []int64{1}, []int64{2}), y, shape(s, 4), op.Const(s, 0.0))
			return v
		})},
		{"SparseFillEmptyRows", []input{in(2), in()}, two(func(s *scope, x, y op.Output) op.Output {
			_, v, _, _ := op.SparseFillEmptyRows(s, at(s, []int64{0, 1}, []int64{2, 0}), x, shape(s, 4, 2), y)
			return v
		})},
		{"SparseSlice", []input{in(3)}, one(func(s *scope, x op.Output) op.Output {
			_, v, _ := op.SparseSlice(s, at(s, []int64{0, 2}, []int64{1, 0}, []int64{1, 1}), x, shape(s, 2, 3), shape(s, 1, 0), shape(s, 1, 2))
			return v
		})},
		{"SparseDenseCwiseMul", []input{in(3), in(2, 3)}, two(func(s *scope, x, y op.Output) op.Output {
			return op.SparseDenseCwiseMul(s, at(s, []int64{0, 0, 2}, []int64{1, 1, 0}, []int64{3, 1, 0}), x, shape(s, 4, 2, 3), y)
		})},
		{"SparseDenseCwiseAdd", []input{in(3), in(1, 3)}, two(func(s *scope, x, y op.Output) op.Output {
			return op.Square(s, op.SparseDenseCwiseAdd(s, at(s, []int64{0, 2}, []int64{1, 1}, []int64{1, 2}), x, shape(s, 2, 3), y))
		})},
		{"SparseDenseCwiseDiv", []input{in(2), in(2, 1)}, two(func(s *scope, x, y op.Output) op.Output {
			return op.SparseDenseCwiseDiv(s, at(s, []int64{0, 2}, []int64{1, 1}), x, shape(s, 2, 3), y)
		})},
		{"SparseTensorDenseAdd", []input{in(2), in(2, 3)}, two(func(s *scope, x, y op.Output) op.Output {
			return op.Square(s, op.SparseTensorDenseAdd(s, at(s, []int64{0, 2}, []int64{1, 1}), x, shape(s, 2, 3), y))
		})},
		{"SparseReduceSum", []input{in(3)}, one(func(s *scope, x op.Output) op.Output {
			return op.Square(s, op.SparseReduceSum(s, at(s, []int64{0, 1}, []int64{0, 2}, []int64{1, 1}), x, shape(s, 2, 3), ints(s, -1)))
		})},
		{"SparseSoftmax/twice", []input{in(3)}, one(func(s *scope, x op.Output) op.Output {
			y := op.SparseSoftmax(s, at(s, []int64{0, 1}, []int64{0, 2}, []int64{1, 1}), x, shape(s, 2, 3))
			return gradients.Compute(s, outs{op.Exp(s, y)}, outs{x})[0].Dense
		})},
		{"SparseSoftmax", []input{in(3)}, one(func(s *scope, x op.Output) op.Output {
			return op.SparseSoftmax(s, at(s, []int64{0, 1}, []int64{0, 2}, []int64{1, 1}), x, shape(s, 2, 3))
		})},
		{"SparseTensorDenseMatMul", []input{in(2), in(3, 2)}, two(func(s *scope, x, y op.Output) op.Output {
			return op.SparseTensorDenseMatMul(s, at(s, []int64{0, 2}, []int64{1, 0}), x, shape(s, 2, 3), y)
		})},
		{"SparseTensorDenseMatMul/adjoint a", []input{in(2), in(2, 2)}, two(func(s *scope, x, y op.Output) op.Output {
			return op.SparseTensorDenseMatMul(s, at(s, []int64{0, 2}, []int64{1, 0}), x, shape(s, 2, 3), y, op.SparseTensorDenseMatMulAdjointA(true))
		})},
		{"SparseTensorDenseMatMul/adjoint b", []input{in(2), in(2, 3)}, two(func(s *scope, x, y op.Output) op.Output {
			return op.SparseTensorDenseMatMul(s, at(s, []int64{0, 2}, []int64{1, 0}), x, shape(s, 2, 3), y, op.SparseTensorDenseMatMulAdjointB(true))
		})},
	})
}
