package nn_test

import (
	"strings"
	"testing"

	"github.com/weft-ml/weft/nn"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
)

// A loss of probabilities does not take the output of a layer without an activation.
func TestProbabilitiesWithoutActivation(t *testing.T) {
	for _, c := range []struct {
		name   string // of the activation
		loss   func(fromLogits bool) nn.Loss
		labels tensor.DType
		shape  tensor.PartialShape
	}{
		{"Sigmoid", func(b bool) nn.Loss { return nn.BinaryCrossentropy{FromLogits: b} }, tensor.Float32, tensor.MakePartial(-1, 3)},
		{"Softmax", func(b bool) nn.Loss { return nn.CategoricalCrossentropy{FromLogits: b} }, tensor.Float32, tensor.MakePartial(-1, 3)},
		{"Softmax", func(b bool) nn.Loss { return nn.SparseCategoricalCrossentropy{FromLogits: b} }, tensor.Int32, tensor.MakePartial(-1)},
	} {
		for _, activation := range []nn.Activation{nil, nn.Softmax, nn.Sigmoid} {
			for _, fromLogits := range []bool{false, true} {
				s := op.NewScope()
				m := &nn.Model{Network: nn.Sequential{&nn.Dense{Units: 3, Activation: activation}}, Loss: c.loss(fromLogits)}
				x := op.Placeholder(s, tensor.Float32, op.PlaceholderShape(tensor.MakePartial(-1, 2)))
				m.Build(s, []op.Output{x}, op.Placeholder(s, c.labels, op.PlaceholderShape(c.shape)))
				err := s.Err()
				if wrong := activation == nil && !fromLogits; wrong != (err != nil) {
					t.Errorf("%T with FromLogits %v and the activation %v: %v", m.Loss, fromLogits, activation != nil, err)
				}
				if err != nil && !strings.Contains(err.Error(), "nn."+c.name) {
					t.Errorf("%T: %v does not name nn.%s", m.Loss, err, c.name)
				}
			}
		}
	}
}
