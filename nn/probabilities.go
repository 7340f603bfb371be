package nn

import (
	"slices"

	"github.com/weft-ml/weft/op"
)

// linear are operations whose values have no bounds: the last ones of a layer without an
// activation.
var linear = []string{"BatchMatMulV2", "BiasAdd", "Conv1D", "Conv2D", "Conv3D", "MatMul"}

// wantProbabilities records an error if predictions are the output of a layer without an
// activation. They are no probabilities, and the training would go on without getting anywhere.
func wantProbabilities(s *op.Scope, predictions op.Output, activation string) bool {
	if predictions.Node == nil || !slices.Contains(linear, predictions.Node.Op.Name) {
		return true
	}
	fail(s, "the loss expects probabilities, but the last layer has no activation; set FromLogits of the loss, or Activation: nn.%s of the layer",
		activation)
	return false
}
