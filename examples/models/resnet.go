package main

import (
	"context"
	"math"
	"math/rand/v2"

	"github.com/weft-ml/weft/data"
	"github.com/weft-ml/weft/metrics"
	"github.com/weft-ml/weft/nn"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/train"
)

// block is a residual block of two convolutions (He et al., 2016).
type block struct {
	body     nn.Sequential
	shortcut nn.Layer // nil for the identity
}

func newBlock(filters, stride int, widen bool) *block {
	convolution := func(kernel, stride int) nn.Layer {
		return &nn.Conv2D{
			Filters: filters, Kernel: []int{kernel}, Strides: []int{stride}, Padding: nn.Same, NoBias: true,
			KernelInit: train.HeNormal(), KernelRegularizer: nn.L2(1e-4),
		}
	}
	b := &block{body: nn.Sequential{
		convolution(3, stride), &nn.BatchNormalization{Momentum: 0.9}, &nn.ActivationLayer{Func: nn.ReLU},
		convolution(3, 1), &nn.BatchNormalization{Momentum: 0.9},
	}}
	if widen {
		b.shortcut = convolution(1, stride)
	}
	return b
}

// Apply implements [nn.Layer].
func (b *block) Apply(c *nn.Context, x op.Output) op.Output {
	y := b.body.Apply(c, x)
	if b.shortcut != nil {
		x = b.shortcut.Apply(c, x)
	}
	return op.Relu(c.Scope, op.AddV2(c.Scope, x, y))
}

// resNet20 returns the network: a convolution, three stages of three blocks, and a dense layer.
func resNet20(filters, classes int) nn.Sequential {
	net := nn.Sequential{
		&nn.Conv2D{Filters: filters, Kernel: []int{3}, Padding: nn.Same, NoBias: true, KernelInit: train.HeNormal()},
		&nn.BatchNormalization{Momentum: 0.9}, &nn.ActivationLayer{Func: nn.ReLU},
	}
	for stage := range 3 {
		for i := range 3 {
			first := stage > 0 && i == 0
			stride := 1
			if first {
				stride = 2
			}
			net = append(net, newBlock(filters<<stage, stride, first))
		}
	}
	return append(net, &nn.GlobalAveragePooling2D{}, &nn.Dense{Units: classes})
}

// fitResNet trains ResNet-20 on images of 32 x 32 pixels and three colors. Below 1000 images it has
// half the filters.
func fitResNet(ctx context.Context, size int, o train.FitOptions) (*train.History, error) {
	filters := 16
	if size < 1000 {
		filters = 8
	}
	training, err := textures(size, 1)
	if err != nil {
		return nil, err
	}
	test, err := textures(200, 2)
	if err != nil {
		return nil, err
	}
	m := &nn.Model{
		Network: resNet20(filters, 10), Loss: nn.SparseCategoricalCrossentropy{FromLogits: true},
		Metrics: []train.Metric{metrics.SparseCategoricalAccuracy{}},
	}
	o.Optimizer = train.NewAdam(0.003)
	o.Validation = test.Batch(100)
	return train.Fit(ctx, m, training.Shuffle(size, 1).Batch(20), o)
}

// textures returns n images of waves, whose direction, width and color depend on the label.
func textures(n int, seed uint64) (*data.Dataset, error) {
	const side = 32
	rng := rand.New(rand.NewPCG(seed, 0))
	pixels, labels := make([]float32, 0, n*side*side*3), make([]int32, n)
	for i := range labels {
		label := rng.IntN(10)
		labels[i] = int32(label)
		sin, cos := math.Sincos(float64(label%5) * math.Pi / 5)
		shift := rng.Float64() * 2 * math.Pi
		for p := range side * side {
			x, y := float64(p%side), float64(p/side)
			wave := math.Sin((x*cos+y*sin)*(0.5+0.4*float64(label/5)) + shift)
			for c := range 3 {
				pixels = append(pixels, float32(wave*(0.5+0.5*float64((label+c)%3))+0.5*rng.NormFloat64()))
			}
		}
	}
	x, err := tensor.FromSlice(tensor.Shape{int64(n), side, side, 3}, pixels)
	if err != nil {
		return nil, err
	}
	return data.FromSlices(x, labels)
}
