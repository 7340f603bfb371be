package gradients_test

import (
	"strings"
	"testing"

	"github.com/weft-ml/weft/gradients"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
)

func TestShapes(t *testing.T) {
	checkRules(t, []ruleCase{
		{"Identity", []input{in(3)}, one(op.Identity)},
		{"Snapshot", []input{in(3)}, one(op.Snapshot)},
		{"DebugGradientIdentity", []input{in(3)}, one(op.DebugGradientIdentity)},
		{"EnsureShape", []input{in(3)}, one(func(s *op.Scope, x op.Output) op.Output { return op.EnsureShape(s, x, tensor.MakePartial(-1)) })},
		{"IdentityN", []input{in(3), in(2)}, func(s *op.Scope, x []op.Output) []op.Output { return op.IdentityN(s, x) }},
		{"Reshape", []input{in(2, 3)}, one(func(s *op.Scope, x op.Output) op.Output { return op.Reshape(s, x, ints(s, 3, -1)) })},
		{"ExpandDims", []input{in(2, 3)}, one(func(s *op.Scope, x op.Output) op.Output { return op.ExpandDims(s, x, ints(s, 1)) })},
		{"Squeeze", []input{in(2, 1, 3)}, one(func(s *op.Scope, x op.Output) op.Output { return op.Squeeze(s, x) })},
		{"Transpose", []input{in(2, 3, 4)}, one(func(s *op.Scope, x op.Output) op.Output { return op.Transpose(s, x, ints(s, 2, 0, 1)) })},
		{"BroadcastTo", []input{in(3, 1)}, one(func(s *op.Scope, x op.Output) op.Output { return op.BroadcastTo(s, x, ints(s, 2, 3, 2)) })},
		{"Fill", []input{in()}, one(func(s *op.Scope, x op.Output) op.Output { return op.Fill(s, ints(s, 2, 2), x) })},
		{"Tile", []input{in(2, 3)}, one(func(s *op.Scope, x op.Output) op.Output { return op.Tile(s, x, ints(s, 2, 3)) })},
		{"Reverse", []input{in(2, 3)}, one(func(s *op.Scope, x op.Output) op.Output { return op.Reverse(s, x, op.Const(s, []bool{false, true})) })},
		{"ReverseSequence", []input{in(3, 4)}, one(func(s *op.Scope, x op.Output) op.Output {
			return op.ReverseSequence(s, x, ints(s, 1, 3, 4), 1)
		})},
		{"Roll", []input{in(3, 4)}, one(func(s *op.Scope, x op.Output) op.Output { return op.Roll(s, x, ints(s, 1, -2), ints(s, 0, 1)) })},
		{"ReverseV2", []input{in(2, 3)}, one(func(s *op.Scope, x op.Output) op.Output { return op.ReverseV2(s, x, ints(s, 1)) })},
		{"ConjugateTranspose", []input{in(2, 3).of(tensor.Complex128)}, one(func(s *op.Scope, x op.Output) op.Output {
			return op.ConjugateTranspose(s, x, ints(s, 1, 0))
		})},
		{"CheckNumericsV2", []input{in(2)}, one(func(s *op.Scope, x op.Output) op.Output { return op.CheckNumericsV2(s, x, "bad") })},
		{"PlaceholderWithDefault", []input{in(2)}, one(func(s *op.Scope, x op.Output) op.Output {
			return op.PlaceholderWithDefault(s, x, tensor.MakePartial(2))
		})},
		{"CheckNumerics", []input{in(2)}, one(func(s *op.Scope, x op.Output) op.Output { return op.CheckNumerics(s, x, "bad") })},
	})
}

func TestParts(t *testing.T) {
	checkRules(t, []ruleCase{
		{"ConcatV2", []input{in(2, 1), in(2, 3)}, all(func(s *op.Scope, x []op.Output) op.Output {
			return op.ConcatV2(s, x, op.Const(s, int32(-1)))
		})},
		{"Concat", []input{in(1, 2), in(3, 2)}, all(func(s *op.Scope, x []op.Output) op.Output {
			return op.Concat(s, op.Const(s, int32(0)), x)
		})},
		{"Split", []input{in(2, 4)}, func(s *op.Scope, x []op.Output) []op.Output {
			return op.Split(s, op.Const(s, int32(1)), x[0], 2)
		}},
		{"Split/unused", []input{in(2, 4)}, func(s *op.Scope, x []op.Output) []op.Output {
			return op.Split(s, op.Const(s, int32(1)), x[0], 2)[1:]
		}},
		{"SplitV", []input{in(2, 4)}, func(s *op.Scope, x []op.Output) []op.Output {
			return op.SplitV(s, x[0], ints(s, 1, 3), op.Const(s, int32(1)), 2)
		}},
		{"Pack", []input{in(2, 3), in(2, 3)}, all(func(s *op.Scope, x []op.Output) op.Output { return op.Pack(s, x, op.PackAxis(1)) })},
		{"Unpack", []input{in(2, 3)}, func(s *op.Scope, x []op.Output) []op.Output { return op.Unpack(s, x[0], 3, op.UnpackAxis(-1)) }},
		{"Slice", []input{in(3, 4)}, one(func(s *op.Scope, x op.Output) op.Output { return op.Slice(s, x, ints(s, 1, 0), ints(s, 2, -1)) })},
		{"StridedSlice", []input{in(4, 3, 2)}, one(func(s *op.Scope, x op.Output) op.Output {
			return op.StridedSlice(s, x, ints(s, 3, 0, 1), ints(s, 0, 2, 2), ints(s, -2, 1, 1), op.StridedSliceShrinkAxisMask(4))
		})},
		{"StridedSlice/masks", []input{in(4, 3, 2)}, one(func(s *op.Scope, x op.Output) op.Output {
			return op.StridedSlice(s, x, ints(s, 1, 0, 0), ints(s, 3, 0, 1), ints(s, 1, 1, 1), op.StridedSliceEllipsisMask(2), op.StridedSliceNewAxisMask(4))
		})},
		{"Pad", []input{in(2, 3)}, one(func(s *op.Scope, x op.Output) op.Output {
			return op.Pad(s, x, op.Const(s, [][]int32{{1, 0}, {0, 2}}))
		})},
		{"PadV2", []input{in(2, 3)}, one(func(s *op.Scope, x op.Output) op.Output {
			return op.PadV2(s, x, op.Const(s, [][]int64{{1, 0}, {0, 2}}), op.Const(s, 7.0))
		})},
	})
}

func TestGathers(t *testing.T) {
	mask := func(s *op.Scope) op.Output { return op.Const(s, []bool{true, false, true}) }
	gatherV2 := func(axis int32, opts ...op.GatherV2Attr) func(*op.Scope, []op.Output) []op.Output {
		return one(func(s *op.Scope, x op.Output) op.Output {
			return op.GatherV2(s, x, op.Const(s, [][]int32{{1, 0}, {1, 1}}), op.Const(s, axis), opts...)
		})
	}
	checkRules(t, []ruleCase{
		{"Gather", []input{in(3, 2)}, one(func(s *op.Scope, x op.Output) op.Output { return op.Gather(s, x, ints(s, 2, 0, 2)) })},
		{"GatherV2", []input{in(2, 2)}, gatherV2(0)},
		{"GatherV2/inner", []input{in(2, 3, 2)}, gatherV2(1)},
		{"GatherV2/last", []input{in(2, 3, 2)}, gatherV2(-1)},
		{"GatherV2/batch", []input{in(2, 3, 2)}, gatherV2(1, op.GatherV2BatchDims(1))},
		{"GatherV2/batch, last", []input{in(2, 3, 2)}, gatherV2(-1, op.GatherV2BatchDims(1))},
		{"GatherV2/all batch", []input{in(2, 2, 3)}, gatherV2(2, op.GatherV2BatchDims(2))},
		{"GatherNd", []input{in(2, 3)}, one(func(s *op.Scope, x op.Output) op.Output {
			return op.GatherNd(s, x, op.Const(s, [][]int32{{1, 2}, {0, 0}, {1, 2}}))
		})},
		{"Select", []input{in(3), in(3)}, two(func(s *op.Scope, x, y op.Output) op.Output { return op.Select(s, mask(s), x, y) })},
		{"Select/rows", []input{in(3, 2), in(3, 2)}, two(func(s *op.Scope, x, y op.Output) op.Output { return op.Select(s, mask(s), x, y) })},
		{"SelectV2", []input{in(2, 1), in(3)}, two(func(s *op.Scope, x, y op.Output) op.Output { return op.SelectV2(s, mask(s), x, y) })},
	})
}

func TestDiagonals(t *testing.T) {
	k := func(s *op.Scope) op.Output { return op.Const(s, []int32{-1, 1}) }
	zero := func(s *op.Scope) op.Output { return op.Const(s, 0.0) }
	minusOne := func(s *op.Scope) op.Output { return op.Const(s, int32(-1)) }
	checkRules(t, []ruleCase{
		{"Diag", []input{in(2, 2)}, one(op.Diag)},
		{"DiagPart", []input{in(2, 3, 2, 3)}, one(op.DiagPart)},
		{"MatrixDiag", []input{in(2, 3)}, one(op.MatrixDiag)},
		{"MatrixDiagV2", []input{in(2, 3, 3)}, one(func(s *op.Scope, x op.Output) op.Output {
			return op.MatrixDiagV2(s, x, k(s), minusOne(s), minusOne(s), zero(s))
		})},
		{"MatrixDiagV3", []input{in(2, 3, 3)}, one(func(s *op.Scope, x op.Output) op.Output {
			return op.MatrixDiagV3(s, x, k(s), minusOne(s), minusOne(s), zero(s), op.MatrixDiagV3Align("LEFT_RIGHT"))
		})},
		{"MatrixDiagPart", []input{in(2, 3, 4)}, one(op.MatrixDiagPart)},
		{"MatrixDiagPartV2", []input{in(3, 4)}, one(func(s *op.Scope, x op.Output) op.Output { return op.MatrixDiagPartV2(s, x, k(s), zero(s)) })},
		{"MatrixDiagPartV3", []input{in(3, 4)}, one(func(s *op.Scope, x op.Output) op.Output { return op.MatrixDiagPartV3(s, x, k(s), zero(s)) })},
		{"MatrixSetDiag", []input{in(2, 3, 4), in(2, 3)}, two(op.MatrixSetDiag)},
		{"MatrixSetDiagV2", []input{in(3, 4), in(3, 3)}, two(func(s *op.Scope, x, d op.Output) op.Output { return op.MatrixSetDiagV2(s, x, d, k(s)) })},
		{"MatrixSetDiagV3", []input{in(3, 4), in(3, 3)}, two(func(s *op.Scope, x, d op.Output) op.Output { return op.MatrixSetDiagV3(s, x, d, k(s)) })},
		{"MatrixBandPart", []input{in(3, 4)}, one(func(s *op.Scope, x op.Output) op.Output {
			return op.MatrixBandPart(s, x, op.Const(s, int64(1)), op.Const(s, int64(0)))
		})},
	})
}

func TestBlocks(t *testing.T) {
	pads := func(s *op.Scope) op.Output { return op.Const(s, [][]int32{{1, 1}, {0, 2}}) }
	pads4 := func(s *op.Scope) op.Output { return op.Const(s, [][]int32{{0, 0}, {1, 2}, {2, 1}, {0, 0}}) }
	checkRules(t, []ruleCase{
		{"SpaceToBatch", []input{in(1, 2, 4, 2)}, one(func(s *op.Scope, x op.Output) op.Output { return op.SpaceToBatch(s, x, pads(s), 2) })},
		{"SpaceToBatchND", []input{in(1, 2, 4, 2)}, one(func(s *op.Scope, x op.Output) op.Output {
			return op.SpaceToBatchND(s, x, ints(s, 2, 3), pads(s))
		})},
		{"BatchToSpace", []input{in(4, 2, 3, 2)}, one(func(s *op.Scope, x op.Output) op.Output { return op.BatchToSpace(s, x, pads(s), 2) })},
		{"BatchToSpaceND", []input{in(6, 2, 2, 2)}, one(func(s *op.Scope, x op.Output) op.Output {
			return op.BatchToSpaceND(s, x, ints(s, 2, 3), pads(s))
		})},
		{"SpaceToDepth", []input{in(1, 2, 4, 3)}, one(func(s *op.Scope, x op.Output) op.Output { return op.SpaceToDepth(s, x, 2) })},
		{"DepthToSpace", []input{in(1, 2, 2, 8)}, one(func(s *op.Scope, x op.Output) op.Output { return op.DepthToSpace(s, x, 2) })},
		{"MirrorPad", []input{in(2, 3, 4, 1)}, one(func(s *op.Scope, x op.Output) op.Output { return op.MirrorPad(s, x, pads4(s), "REFLECT") })},
		{"MirrorPadGrad", []input{in(2, 6, 7, 1)}, one(func(s *op.Scope, x op.Output) op.Output { return op.MirrorPadGrad(s, x, pads4(s), "SYMMETRIC") })},
		{"ExtractImagePatches", []input{in(2, 4, 5, 2)}, one(func(s *op.Scope, x op.Output) op.Output {
			return op.ExtractImagePatches(s, x, []int64{1, 2, 3, 1}, []int64{1, 2, 1, 1}, []int64{1, 1, 2, 1}, "SAME")
		})},
		{"ExtractVolumePatches", []input{in(2, 3, 4, 2, 2)}, one(func(s *op.Scope, x op.Output) op.Output {
			return op.ExtractVolumePatches(s, x, []int64{1, 2, 2, 2, 1}, []int64{1, 1, 2, 1, 1}, "VALID")
		})},
	})
}

func TestScatters(t *testing.T) {
	at := func(s *op.Scope) op.Output { return op.Const(s, [][]int32{{2}, {0}}) }
	rows := []input{in(3, 2), in(2, 2)}
	checkRules(t, []ruleCase{
		{"ScatterNd", []input{in(2, 2)}, one(func(s *op.Scope, x op.Output) op.Output { return op.ScatterNd(s, at(s), x, ints(s, 4, 2)) })},
		{"ScatterNdNonAliasingAdd", rows, two(func(s *op.Scope, x, u op.Output) op.Output { return op.ScatterNdNonAliasingAdd(s, x, at(s), u) })},
		{"TensorScatterAdd", rows, two(func(s *op.Scope, x, u op.Output) op.Output { return op.TensorScatterAdd(s, x, at(s), u) })},
		{"TensorScatterSub", rows, two(func(s *op.Scope, x, u op.Output) op.Output { return op.TensorScatterSub(s, x, at(s), u) })},
		{"TensorScatterUpdate", rows, two(func(s *op.Scope, x, u op.Output) op.Output { return op.TensorScatterUpdate(s, x, at(s), u) })},
		{"TensorScatterMax", rows, two(func(s *op.Scope, x, u op.Output) op.Output { return op.TensorScatterMax(s, x, at(s), u) })},
		{"TensorScatterMin", rows, two(func(s *op.Scope, x, u op.Output) op.Output { return op.TensorScatterMin(s, x, at(s), u) })},
		{"TensorStridedSliceUpdate", []input{in(4, 3), in(3)}, two(func(s *op.Scope, x, v op.Output) op.Output {
			return op.TensorStridedSliceUpdate(s, x, ints(s, 1), ints(s, 4), ints(s, 2), v)
		})},
		{"StridedSliceGrad", []input{in(2, 3)}, one(func(s *op.Scope, x op.Output) op.Output {
			return op.StridedSliceGrad(s, ints(s, 4, 3), ints(s, 1), ints(s, 4), ints(s, 2), x)
		})},
		{"DynamicStitch", []input{in(2, 2), in(3, 2)}, all(func(s *op.Scope, x []op.Output) op.Output {
			return op.DynamicStitch(s, []op.Output{ints(s, 0, 2), ints(s, 4, 3, 1)}, x)
		})},
		{"ParallelDynamicStitch", []input{in(2, 2), in(3, 2)}, all(func(s *op.Scope, x []op.Output) op.Output {
			return op.ParallelDynamicStitch(s, []op.Output{ints(s, 0, 2), ints(s, 4, 3, 1)}, x)
		})},
		{"DynamicPartition", []input{in(2, 2, 3)}, func(s *op.Scope, x []op.Output) []op.Output {
			return op.DynamicPartition(s, x[0], op.Const(s, [][]int32{{2, 0}, {0, 2}}), 3)
		}},
		{"TopK", []input{in(2, 3, 5)}, one(func(s *op.Scope, x op.Output) op.Output {
			values, _ := op.TopK(s, x, 2)
			return values
		})},
		{"ApproxTopK", []input{in(5).of(tensor.Float32)}, one(func(s *op.Scope, x op.Output) op.Output {
			y, _ := op.ApproxTopK(s, x, 2)
			return op.Square(s, y)
		})},
		{"ApproxTopK/other dimension", []input{in(2, 4, 3).of(tensor.Float32)}, one(func(s *op.Scope, x op.Output) op.Output {
			y, _ := op.ApproxTopK(s, x, 2, op.ApproxTopKReductionDimension(-2), op.ApproxTopKIsMaxK(false))
			return op.Square(s, y)
		})},
		{"TopKV2", []input{in(5)}, one(func(s *op.Scope, x op.Output) op.Output {
			values, _ := op.TopKV2(s, x, op.Const(s, int32(3)))
			return values
		})},
	})
}

func TestPreventGradient(t *testing.T) {
	markChecked("PreventGradient")
	s := op.NewScope()
	x := op.Const(s, 1.0)
	y := op.PreventGradient(s, x, op.PreventGradientMessage("not here"))
	if grads := gradients.Compute(s, []op.Output{y}, []op.Output{x}); !grads[0].IsNone() {
		t.Error("there is a gradient")
	}
	if err := s.Err(); err == nil || !strings.Contains(err.Error(), "Gradient explicitly disabled. Reason: not here") {
		t.Errorf("got %v", err)
	}
}
