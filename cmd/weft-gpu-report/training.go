package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"time"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/graph"
	_ "github.com/weft-ml/weft/internal/kernels/gpu" // operations on devices
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/server"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/train"
)

// A network is trained on the device and on the CPU. Its twin in tensorflow.py has the same name
// and begins with the same weights.
type network struct {
	name   string
	inputs tensor.Shape // of a batch
	logits func(n *builder, x op.Output) op.Output
}

const networkClasses = 10

// networks are a perceptron, and the network of TensorFlow's CIFAR-10 tutorial.
var networks = []network{
	{"perceptron 784-1024-1024-10, batch 128", tensor.Shape{128, 784}, func(n *builder, x op.Output) op.Output {
		x = op.Relu(n.s, n.dense(x, 784, 1024))
		x = op.Relu(n.s, n.dense(x, 1024, 1024))
		return n.dense(x, 1024, networkClasses)
	}},
	{"CIFAR-10 network, batch 128", tensor.Shape{128, 32, 32, 3}, func(n *builder, x op.Output) op.Output {
		x = n.normalize(n.pool(n.convolution(x, 3, 64)))
		x = n.pool(n.normalize(n.convolution(x, 64, 64)))
		x = op.Reshape(n.s, x, op.Const(n.s, []int32{-1, 8 * 8 * 64}))
		x = op.Relu(n.s, n.dense(x, 8*8*64, 384))
		x = op.Relu(n.s, n.dense(x, 384, 192))
		return n.dense(x, 192, networkClasses)
	}},
}

// builder adds the layers of a network to a graph.
type builder struct {
	s         *op.Scope
	variables int
}

// variable adds a variable with values that the twin computes in the same way.
func (n *builder) variable(shape tensor.Shape, deviation float64, opts ...train.VariableOption) *train.Variable {
	s := n.s.SubScope(fmt.Sprintf("variable%d", n.variables))
	first := train.Zeros
	if deviation > 0 {
		first = func(*op.Scope, tensor.Shape, tensor.DType) op.Output {
			t, err := tensor.FromSlice(shape, spread(int(shape.NumElements()), n.variables, deviation))
			if err != nil {
				panic(err) // the shape is a constant of this program
			}
			return op.Const(s, t)
		}
	}
	n.variables++
	return train.NewVariable(s, "v", shape, tensor.Float32, first, append(opts, train.Resource())...)
}

// spread returns n values with a uniform distribution of the given standard deviation.
func spread(n, seed int, deviation float64) []float32 {
	v := make([]float32, n)
	for i := range v {
		hash := uint32(i+seed*7919) * 2654435761 //nolint:gosec // wraps on purpose
		hash ^= hash >> 15
		hash *= 2246822519
		v[i] = float32((float64(hash)/(1<<32) - 0.5) * math.Sqrt(12) * deviation)
	}
	return v
}

func (n *builder) dense(x op.Output, in, out int64) op.Output {
	w, b := n.variable(tensor.Shape{in, out}, math.Sqrt(2/float64(in))), n.variable(tensor.Shape{out}, 0)
	return op.BiasAdd(n.s, op.MatMul(n.s, x, w.Read(n.s)), b.Read(n.s))
}

func (n *builder) convolution(x op.Output, in, out int64) op.Output {
	w, b := n.variable(tensor.Shape{5, 5, in, out}, math.Sqrt(2/float64(25*in))), n.variable(tensor.Shape{out}, 0)
	return op.Relu(n.s, op.BiasAdd(n.s, op.Conv2D(n.s, x, w.Read(n.s), []int64{1, 1, 1, 1}, "SAME"), b.Read(n.s)))
}

func (n *builder) pool(x op.Output) op.Output {
	return op.MaxPool(n.s, x, []int64{1, 3, 3, 1}, []int64{1, 2, 2, 1}, "SAME")
}

func (n *builder) normalize(x op.Output) op.Output {
	return op.LRN(n.s, x, op.LRNDepthRadius(4), op.LRNBias(1), op.LRNAlpha(0.001/9), op.LRNBeta(0.75))
}

// trainingRun is what was found by training a network on a device.
type trainingRun struct {
	losses []float64     // of the first steps
	step   time.Duration // of one step, on average

	launches int           // kernels of a step
	kernels  time.Duration // of all kernels of a step
	longest  []kernelTime
}

// comparedSteps is the number of steps whose losses are compared.
const comparedSteps = 10

// training trains the networks on the device and on the CPU.
func (e *examination) training() error {
	chosen, err := regexp.Compile(e.options.networks)
	if err != nil {
		return err
	}
	c, err := server.StartCluster(map[string]int{"localhost": 1}, 1, server.WithGPU(e.driver))
	if err != nil {
		return err
	}
	defer c.Close()
	target := c.Target("localhost", 0)
	for i := range networks {
		n := &networks[i]
		if !chosen.MatchString(n.name) {
			continue
		}
		want, err := n.train(target, "/cpu:0", 1)
		if err != nil {
			return fmt.Errorf("%s on the CPU: %w", n.name, err)
		}
		got, err := n.train(target, fmt.Sprintf("/gpu:%d", e.number), e.options.steps)
		if err != nil {
			return fmt.Errorf("%s: %w", n.name, err)
		}
		e.figure(e.name, "training step, "+n.name, got.step.Seconds()*1e6, "µs")
		e.figure(e.name, "training step on the CPU, "+n.name, want.step.Seconds()*1e6, "µs")
		e.profiled(n.name, &got)
		worst := 0.0
		for i := range want.losses {
			worst = max(worst, math.Abs(got.losses[i]-want.losses[i])/math.Abs(want.losses[i]))
		}
		e.figure(e.name, "largest relative difference of the first losses from the CPU's, "+n.name, worst, "")
		if !(worst < lossTolerance) {
			return fmt.Errorf("%s: the losses are %v, on the CPU %v", n.name, got.losses, want.losses)
		}
	}
	return e.tensorFlow()
}

// lossTolerance bounds the relative difference of losses. Products of TF32 differ by 1e-3.
const lossTolerance = 1e-2

// train trains on a device: the compared steps first, then steps to take the time of.
func (n *network) train(target, device string, steps int) (r trainingRun, err error) {
	s := op.NewScope()
	b := &builder{s: s.WithDevice(device)}
	x := b.variable(n.inputs, 0.5, train.NotTrainable())
	labels := make([]int64, n.inputs[0])
	for i := range labels {
		labels[i] = int64(i * i % networkClasses)
	}
	y := train.NewVariable(b.s, "labels", tensor.Shape{n.inputs[0]}, tensor.Int64, train.Values(labels), train.Resource(),
		train.NotTrainable())
	each, _ := op.SparseSoftmaxCrossEntropyWithLogits(b.s, n.logits(b, x.Read(b.s)), y.Read(b.s))
	loss := op.Mean(b.s, each, op.Const(b.s, []int32{0}))
	step := train.Minimize(b.s, train.NewGradientDescent(0.01), loss, nil)
	begin := train.VariablesInitializer(s, train.Variables(s, train.GlobalVariables)...)
	g, err := s.Finalize()
	if err != nil {
		return r, err
	}
	session, err := weft.NewSession(target, g)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, session.Close()) }()
	ctx := context.Background()
	if err := session.Exec(ctx, nil, begin); err != nil {
		return r, err
	}
	one := func() error {
		out, err := session.Run(ctx, nil, []op.Output{loss}, []*graph.Node{step})
		if err == nil {
			r.losses = append(r.losses, float64(tensor.Value[float32](&out[0])))
		}
		return err
	}
	for range comparedSteps {
		if err := one(); err != nil {
			return r, err
		}
	}
	first := r.losses
	start := time.Now()
	for range steps {
		if err := session.Exec(ctx, nil, step); err != nil {
			return r, err
		}
	}
	err = one() // waits for the work of the steps before
	r.losses, r.step = first, time.Since(start)/time.Duration(steps+1)
	if err == nil {
		r.longest, r.kernels, r.launches, err = profile(session, step)
	}
	return r, err
}
