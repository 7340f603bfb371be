package nn

import (
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
)

// CTC is the connectionist temporal classification loss (Graves et al., 2006). Predictions are
// logits of shape [batch, time, classes], whose class 0 is the blank. Labels have shape [batch,
// length] and are padded with zeros. The result has shape [batch].
type CTC struct{}

// Losses implements [Loss].
func (CTC) Losses(s *op.Scope, labels, predictions op.Output) op.Output {
	if labels.Node == nil || predictions.Node == nil {
		return op.Output{}
	}
	if labels.DType().Base() != tensor.Int32 {
		labels = op.Cast(s, labels, tensor.Int32)
	}
	// The operation has the blank as its last class and the time first.
	first := op.Slice(s, predictions, ints(s, 0, 0, 0), ints(s, -1, -1, 1))
	others := op.Slice(s, predictions, ints(s, 0, 0, 1), ints(s, -1, -1, -1))
	logits := transpose(s, op.ConcatV2(s, []op.Output{others, first}, op.Const(s, int32(2))), 1, 0, 2)
	places := op.Where(s, op.NotEqual(s, labels, op.Const(s, int32(0))))
	values := op.Sub(s, op.GatherNd(s, labels, places), op.Const(s, int32(1)))
	lengths := op.Fill(s, op.ExpandDims(s, dim(s, logits, 1), op.Const(s, int32(0))), dim(s, logits, 0))
	losses, _ := op.CTCLoss(s, logits, places, values, lengths)
	return losses
}
