package gradients

import (
	"strings"

	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	Register(func(c *Call) []Grad {
		return List(output(c.like("LRNGrad", c.DY(0), c.In(0), c.Out(0)), 0))
	}, "LRN")
	Register(func(c *Call) []Grad {
		n := c.like("BatchNormWithGlobalNormalizationGrad", c.In(0), c.In(1), c.In(2), c.In(4), c.DY(0))
		return List(output(n, 0), output(n, 1), output(n, 2), output(n, 3), output(n, 4))
	}, "BatchNormWithGlobalNormalization")
	for _, version := range []string{"", "V2", "V3"} {
		Register(func(c *Call) []Grad { return fusedBatchNorm(c, "FusedBatchNormGrad"+version) }, "FusedBatchNorm"+version)
		Register(fusedBatchNormGradGrad, "FusedBatchNormGrad"+version)
	}
}

// fusedBatchNorm uses the batch mean and variance that the operation saved in training, or the
// given ones in inference.
func fusedBatchNorm(c *Call, grad string) []Grad {
	mean, variance := c.Out(3), c.Out(4)
	if !c.Node.Attrs.Bool("is_training") {
		mean, variance = c.In(3), c.In(4)
	}
	args := []op.Output{c.DY(0), c.In(0), c.In(1), mean, variance}
	if strings.HasSuffix(grad, "V3") {
		args = append(args, c.Out(5))
	}
	n := c.like(grad, args...)
	return List(output(n, 0), output(n, 1), output(n, 2), op.Output{}, op.Output{})
}

// fusedBatchNormGradGrad expresses the gradient of a normalization by simpler operations and
// differentiates these.
func fusedBatchNormGradGrad(c *Call) []Grad {
	s := c.S
	dy, x, scale := op.Identity(s, c.In(0)), op.Identity(s, c.In(1)), op.Identity(s, c.In(2))
	f := batchNorm{s: s, epsilon: c.Node.Attrs.Float("epsilon"), format: c.Node.Attrs.String("data_format")}
	dyF, xF := f.channelsLast(op.Cast(s, dy, tensor.Float32)), f.channelsLast(op.Cast(s, x, tensor.Float32))
	var dx, dScale, dOffset op.Output
	if c.Node.Attrs.Bool("is_training") {
		dx, dScale, dOffset = f.training(dyF, xF, scale)
	} else {
		dx, dScale, dOffset = f.inference(dyF, xF, scale, c.In(3), c.In(4))
	}
	dx = op.Cast(s, f.channelsBack(dx), x.DType())
	var ys []op.Output
	var initial []Grad
	for i, y := range []op.Output{dx, dScale, dOffset} {
		if !c.Grad(i).IsNone() {
			ys, initial = append(ys, y), append(initial, c.Grad(i))
		}
	}
	return append(Compute(s, ys, []op.Output{dy, x, scale}, Initial(initial...)), c.None()[3:]...)
}

// batchNorm builds the gradients of batch normalization with the channels last.
type batchNorm struct {
	s       *op.Scope
	epsilon float32
	format  string
}

// axes returns the dimensions except that of the channels.
func (f batchNorm) axes() op.Output {
	if len(f.format) == len("NDHWC") {
		return op.Const(f.s, []int32{0, 1, 2, 3})
	}
	return op.Const(f.s, []int32{0, 1, 2})
}

func (f batchNorm) channelsLast(x op.Output) op.Output {
	switch f.format {
	case "NCHW":
		return op.Transpose(f.s, x, op.Const(f.s, []int32{0, 2, 3, 1}))
	case "NCDHW":
		return op.Transpose(f.s, x, op.Const(f.s, []int32{0, 2, 3, 4, 1}))
	}
	return x
}

func (f batchNorm) channelsBack(x op.Output) op.Output {
	switch f.format {
	case "NCHW":
		return op.Transpose(f.s, x, op.Const(f.s, []int32{0, 3, 1, 2}))
	case "NCDHW":
		return op.Transpose(f.s, x, op.Const(f.s, []int32{0, 4, 1, 2, 3}))
	}
	return x
}

// training returns the gradients if mean and variance are those of the batch.
func (f batchNorm) training(dy, x, scale op.Output) (dx, dScale, dOffset op.Output) {
	s := f.s
	mean := op.Mean(s, x, f.axes(), op.MeanKeepDims(true))
	centered := op.Sub(s, x, mean)
	variance := op.Mean(s, op.Square(s, centered), f.axes(), op.MeanKeepDims(true))
	rsqrt := op.Rsqrt(s, op.AddV2(s, variance, op.Const(s, f.epsilon)))
	meanDY := op.Mean(s, dy, f.axes(), op.MeanKeepDims(true))
	meanDYX := op.Mean(s, op.Mul(s, dy, centered), f.axes(), op.MeanKeepDims(true))
	along := op.Mul(s, op.Mul(s, centered, op.Square(s, rsqrt)), meanDYX)
	dx = op.Mul(s, op.Mul(s, scale, rsqrt), op.Sub(s, op.Sub(s, dy, meanDY), along))
	dScale = op.Sum(s, op.Mul(s, dy, op.Mul(s, centered, rsqrt)), f.axes())
	return dx, dScale, op.Sum(s, dy, f.axes())
}

// inference returns the gradients if mean and variance are given.
func (f batchNorm) inference(dy, x, scale, mean, variance op.Output) (dx, dScale, dOffset op.Output) {
	s := f.s
	rsqrt := op.Rsqrt(s, op.AddV2(s, variance, op.Const(s, f.epsilon)))
	dx = op.Mul(s, dy, op.Mul(s, scale, rsqrt))
	dScale = op.Sum(s, op.Mul(s, dy, op.Mul(s, op.Sub(s, x, mean), rsqrt)), f.axes())
	return dx, dScale, op.Sum(s, dy, f.axes())
}
