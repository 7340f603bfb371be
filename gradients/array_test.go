package gradients_test

import (
	"testing"

	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
)

func TestShapes(t *testing.T) {
	checkRules(t, []ruleCase{
		{"Identity", []input{in(3)}, one(op.Identity)},
		{"IdentityN", []input{in(3), in(2)}, func(s *op.Scope, x []op.Output) []op.Output { return op.IdentityN(s, x) }},
		{"Reshape", []input{in(2, 3)}, one(func(s *op.Scope, x op.Output) op.Output { return op.Reshape(s, x, ints(s, 3, -1)) })},
		{"ExpandDims", []input{in(2, 3)}, one(func(s *op.Scope, x op.Output) op.Output { return op.ExpandDims(s, x, ints(s, 1)) })},
		{"Squeeze", []input{in(2, 1, 3)}, one(func(s *op.Scope, x op.Output) op.Output { return op.Squeeze(s, x) })},
		{"Transpose", []input{in(2, 3, 4)}, one(func(s *op.Scope, x op.Output) op.Output { return op.Transpose(s, x, ints(s, 2, 0, 1)) })},
		{"BroadcastTo", []input{in(3, 1)}, one(func(s *op.Scope, x op.Output) op.Output { return op.BroadcastTo(s, x, ints(s, 2, 3, 2)) })},
		{"Fill", []input{in()}, one(func(s *op.Scope, x op.Output) op.Output { return op.Fill(s, ints(s, 2, 2), x) })},
		{"Tile", []input{in(2, 3)}, one(func(s *op.Scope, x op.Output) op.Output { return op.Tile(s, x, ints(s, 2, 3)) })},
		{"ReverseV2", []input{in(2, 3)}, one(func(s *op.Scope, x op.Output) op.Output { return op.ReverseV2(s, x, ints(s, 1)) })},
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
