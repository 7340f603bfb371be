package gradients_test

import (
	"testing"

	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
)

func TestRecurrentCells(t *testing.T) {
	in32 := func(dims ...int64) input { return in(dims...).of(tensor.Float32) }
	layer := []input{in32(2, 3), in32(2, 2), in32(2, 2), in32(5, 8), in32(2), in32(2), in32(2), in32(8)}
	sequences := append([]input{in32(3, 2, 3)}, layer[1:]...)
	length := func(s *op.Scope) op.Output { return op.Const(s, int64(2)) } // of three steps
	checkRules(t, []ruleCase{
		{"BlockLSTM", sequences, func(s *op.Scope, x []op.Output) []op.Output {
			_, cs, _, _, _, _, h := op.BlockLSTM(s, length(s), x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7], op.BlockLSTMUsePeephole(true))
			return []op.Output{cs, h}
		}},
		{"BlockLSTMV2", sequences, func(s *op.Scope, x []op.Output) []op.Output {
			_, cs, _, _, _, _, h := op.BlockLSTMV2(s, length(s), x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7])
			return []op.Output{cs, h}
		}},
		{"LSTMBlockCell", layer, func(s *op.Scope, x []op.Output) []op.Output {
			_, cs, _, _, _, _, h := op.LSTMBlockCell(s, x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7], op.LSTMBlockCellUsePeephole(true))
			return []op.Output{cs, h}
		}},
		{"GRUBlockCell", []input{in32(2, 3), in32(2, 2), in32(5, 4), in32(5, 2), in32(4), in32(2)}, func(s *op.Scope, x []op.Output) []op.Output {
			_, _, _, h := op.GRUBlockCell(s, x[0], x[1], x[2], x[3], x[4], x[5])
			return []op.Output{h}
		}},
	})
}
