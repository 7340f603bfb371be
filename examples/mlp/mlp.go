// Package mlp builds the network of the between-graph programs: 784 inputs, one hidden layer, 10
// classes.
package mlp

import (
	"math"

	"github.com/weft-ml/weft/examples/digits"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/train"
)

// MLP is a perceptron with one hidden layer.
type MLP struct {
	X, Y          op.Output // images [n, 784] and one-hot labels [n, 10], fed in each step
	Probabilities op.Output // [n, 10]
	Loss          op.Output // cross entropy, a scalar
	Accuracy      op.Output // fraction of images that are classified correctly, a scalar
}

// New adds the network to the graph, with the variables "hid_w", "hid_b", "sm_w" and "sm_b".
func New(s *op.Scope, hiddenUnits int) *MLP {
	m := &MLP{
		X: op.Placeholder(s.Named("x"), tensor.Float32, op.PlaceholderShape(tensor.MakePartial(-1, digits.Pixels))),
		Y: op.Placeholder(s.Named("y"), tensor.Float32, op.PlaceholderShape(tensor.MakePartial(-1, digits.Classes))),
	}
	hidden := op.Relu(s, layer(s, "hid", m.X, digits.Pixels, hiddenUnits))
	logits := layer(s, "sm", hidden, hiddenUnits, digits.Classes)
	m.Probabilities = op.Softmax(s.Named("probabilities"), logits)
	losses, _ := op.SoftmaxCrossEntropyWithLogits(s, logits, m.Y)
	m.Loss = op.Mean(s.Named("loss"), losses, op.Const(s, []int32{0}))
	axis := op.Const(s, int32(1))
	right := op.Cast(s, op.Equal(s, op.ArgMax(s, logits, axis), op.ArgMax(s, m.Y, axis)), tensor.Float32)
	m.Accuracy = op.Mean(s.Named("accuracy"), right, op.Const(s, []int32{0}))
	return m
}

func layer(s *op.Scope, name string, x op.Output, in, out int) op.Output {
	spread := train.TruncatedNormal(0, 1/math.Sqrt(float64(in)))
	w := train.NewVariable(s, name+"_w", tensor.Shape{int64(in), int64(out)}, tensor.Float32, spread)
	b := train.NewVariable(s, name+"_b", tensor.Shape{int64(out)}, tensor.Float32, train.Zeros)
	return op.BiasAdd(s, op.MatMul(s, x, w.Value), b.Value)
}

// Feeds returns a batch of n images for the network.
func (m *MLP) Feeds(data *digits.Batches, n int) (map[op.Output]tensor.Tensor, error) {
	images, labels := data.Next(n)
	x, err := tensor.FromSlice(tensor.Shape{int64(n), digits.Pixels}, images)
	if err != nil {
		return nil, err
	}
	y, err := tensor.FromSlice(tensor.Shape{int64(n), digits.Classes}, labels)
	return map[op.Output]tensor.Tensor{m.X: x, m.Y: y}, err
}
