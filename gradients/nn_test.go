package gradients_test

import (
	"testing"

	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
)

func TestActivations(t *testing.T) {
	checkRules(t, []ruleCase{
		{"Relu", []input{in(6)}, one(op.Relu)},
		{"Relu6", []input{in(6).within(-2, 9)}, one(op.Relu6)},
		{"Elu", []input{in(6)}, one(op.Elu)},
		{"Selu", []input{in(6)}, one(op.Selu)},
		{"LeakyRelu", []input{in(6)}, one(func(s *op.Scope, x op.Output) op.Output { return op.LeakyRelu(s, x, op.LeakyReluAlpha(0.3)) })},
		{"Softplus", []input{in(6)}, one(op.Softplus)},
		{"Softsign", []input{in(6)}, one(op.Softsign)},
		{"BiasAdd", []input{in(2, 3), in(3)}, two(func(s *op.Scope, x, b op.Output) op.Output { return op.BiasAdd(s, x, b) })},
		{"BiasAdd/NCHW", []input{in(2, 3, 2, 2), in(3)}, two(func(s *op.Scope, x, b op.Output) op.Output {
			return op.BiasAdd(s, x, b, op.BiasAddDataFormat("NCHW"))
		})},
	})
}

func TestLosses(t *testing.T) {
	checkRules(t, []ruleCase{
		{"Softmax", []input{in(2, 4)}, one(op.Softmax)},
		{"LogSoftmax", []input{in(2, 4)}, one(op.LogSoftmax)},
		{"SoftmaxCrossEntropyWithLogits", []input{in(2, 4), in(2, 4)}, two(func(s *op.Scope, x, y op.Output) op.Output {
			loss, _ := op.SoftmaxCrossEntropyWithLogits(s, x, op.Softmax(s, y)) // labels that add up to one
			return loss
		})},
		{"SparseSoftmaxCrossEntropyWithLogits", []input{in(2, 4)}, one(func(s *op.Scope, x op.Output) op.Output {
			loss, _ := op.SparseSoftmaxCrossEntropyWithLogits(s, x, ints(s, 3, 1))
			return loss
		})},
		{"L2Loss", []input{in(2, 3)}, one(op.L2Loss)},
	})
}

func TestConvolutions(t *testing.T) {
	image, filter := in(2, 5, 6, 2), in(3, 2, 2, 3)
	ksize, strides := []int64{1, 2, 2, 1}, []int64{1, 2, 1, 1}
	checkRules(t, []ruleCase{
		{"Conv2D", []input{image, filter}, two(func(s *op.Scope, x, f op.Output) op.Output { return op.Conv2D(s, x, f, strides, "SAME") })},
		{"Conv2D/dilated", []input{image, filter}, two(func(s *op.Scope, x, f op.Output) op.Output {
			return op.Conv2D(s, x, f, []int64{1, 1, 1, 1}, "VALID", op.Conv2DDilations([]int64{1, 2, 1, 1}))
		})},
		{"MaxPool", []input{image}, one(func(s *op.Scope, x op.Output) op.Output { return op.MaxPool(s, x, ksize, strides, "SAME") })},
		{"AvgPool", []input{image}, one(func(s *op.Scope, x op.Output) op.Output { return op.AvgPool(s, x, ksize, strides, "VALID") })},
		{"LRN", []input{in(1, 2, 2, 8).of(tensor.Float32)}, one(func(s *op.Scope, x op.Output) op.Output {
			return op.LRN(s, x, op.LRNDepthRadius(2), op.LRNAlpha(0.5))
		})},
	})
}
