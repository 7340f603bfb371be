package main

import (
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/train"
)

// A network has two convolutions, each with pooling and normalization, and three fully connected
// layers.
type network struct {
	images, labels op.Output // [n, 32, 32, 3] and [n] int32, fed in each step
	loss, accuracy op.Output // scalars
}

func newNetwork(s *op.Scope, width int) *network {
	n := &network{
		images: op.Placeholder(s.Named("images"), tensor.Float32, op.PlaceholderShape(tensor.MakePartial(-1, side, side, channels))),
		labels: op.Placeholder(s.Named("labels"), tensor.Int32, op.PlaceholderShape(tensor.MakePartial(-1))),
	}
	w := int64(width)
	x := normalize(s, pool(s, convolution(s.SubScope("conv1"), n.images, channels, w)))
	x = pool(s, normalize(s, convolution(s.SubScope("conv2"), x, w, w)))
	flat := side / 4 * side / 4 * w // each of two poolings halves each side
	x = op.Reshape(s, x, op.Const(s, []int32{-1, int32(flat)}))
	x = op.Relu(s, dense(s.SubScope("local3"), x, flat, 6*w, 0.004))
	x = op.Relu(s, dense(s.SubScope("local4"), x, 6*w, 3*w, 0.004))
	logits := dense(s.SubScope("softmax_linear"), x, 3*w, classes, 0)
	losses, _ := op.SparseSoftmaxCrossEntropyWithLogits(s, logits, n.labels)
	n.loss = op.Mean(s.Named("cross_entropy"), losses, op.Const(s, []int32{0}))
	s.AddToCollection(train.Losses, n.loss)
	right := op.Equal(s, op.ArgMax(s, logits, op.Const(s, int32(1)), op.ArgMaxOutputType(tensor.Int32)), n.labels)
	n.accuracy = op.Mean(s.Named("accuracy"), op.Cast(s, right, tensor.Float32), op.Const(s, []int32{0}))
	return n
}

// weights adds a variable and, if decay is not 0, its L2 loss to the collection of losses.
func weights(s *op.Scope, shape tensor.Shape, decay float64) op.Output {
	v := train.NewVariable(s, "weights", shape, tensor.Float32, train.HeNormal())
	if decay != 0 {
		s.AddToCollection(train.Losses, op.Mul(s.Named("weight_loss"), op.L2Loss(s, v.Value), op.Const(s, float32(decay))))
	}
	return v.Value
}

func biases(s *op.Scope, n int64) op.Output {
	return train.NewVariable(s, "biases", tensor.Shape{n}, tensor.Float32, train.Zeros).Value
}

func convolution(s *op.Scope, x op.Output, in, out int64) op.Output {
	filtered := op.Conv2D(s, x, weights(s, tensor.Shape{5, 5, in, out}, 0), []int64{1, 1, 1, 1}, "SAME")
	return op.Relu(s, op.BiasAdd(s, filtered, biases(s, out)))
}

func pool(s *op.Scope, x op.Output) op.Output {
	return op.MaxPool(s, x, []int64{1, 3, 3, 1}, []int64{1, 2, 2, 1}, "SAME")
}

func normalize(s *op.Scope, x op.Output) op.Output {
	return op.LRN(s, x, op.LRNDepthRadius(4), op.LRNBias(1), op.LRNAlpha(0.001/9), op.LRNBeta(0.75))
}

func dense(s *op.Scope, x op.Output, in, out int64, decay float64) op.Output {
	return op.BiasAdd(s, op.MatMul(s, x, weights(s, tensor.Shape{in, out}, decay)), biases(s, out))
}

// totalLoss adds the sum of the collection of losses.
func (n *network) totalLoss(s *op.Scope) op.Output {
	var losses []op.Output
	for _, l := range s.Collection(train.Losses) {
		losses = append(losses, l.(op.Output))
	}
	return op.AddN(s.Named("total_loss"), losses)
}

// feeds returns a batch of images.
func (n *network) feeds(data *images, batch int) (map[op.Output]tensor.Tensor, error) {
	pixels, labels := data.next(batch)
	x, err := tensor.FromSlice(tensor.Shape{int64(batch), side, side, channels}, pixels)
	if err != nil {
		return nil, err
	}
	return map[op.Output]tensor.Tensor{n.images: x, n.labels: tensor.Vector(labels...)}, nil
}
