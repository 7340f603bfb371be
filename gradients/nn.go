package gradients

import "github.com/weft-ml/weft/op"

func init() {
	Register(func(c *Call) []Grad { return List(op.ReluGrad(c.S, c.DY(0), c.Out(0))) }, "Relu")
	Register(func(c *Call) []Grad { return List(op.Relu6Grad(c.S, c.DY(0), c.Out(0))) }, "Relu6")
	Register(func(c *Call) []Grad { return List(op.EluGrad(c.S, c.DY(0), c.Out(0))) }, "Elu")
	Register(func(c *Call) []Grad { return List(op.SeluGrad(c.S, c.DY(0), c.Out(0))) }, "Selu")
	Register(func(c *Call) []Grad {
		return List(op.LeakyReluGrad(c.S, c.DY(0), c.In(0), op.LeakyReluGradAlpha(c.Node.Attrs.Float("alpha"))))
	}, "LeakyRelu")
	Register(func(c *Call) []Grad { return List(op.SoftplusGrad(c.S, c.DY(0), c.In(0))) }, "Softplus")
	Register(func(c *Call) []Grad { return List(op.SoftsignGrad(c.S, c.DY(0), c.In(0))) }, "Softsign")
	Register(func(c *Call) []Grad {
		format := c.Node.Attrs.String("data_format")
		return List(c.DY(0), op.BiasAddGrad(c.S, c.DY(0), op.BiasAddGradDataFormat(format)))
	}, "BiasAdd")
	Register(func(c *Call) []Grad {
		s, y, dy := c.S, c.Out(0), c.DY(0)
		total := op.Sum(s, op.Mul(s, dy, y), op.Const(s, []int32{-1}), op.SumKeepDims(true))
		return List(op.Mul(s, op.Sub(s, dy, total), y))
	}, "Softmax")
	Register(func(c *Call) []Grad {
		s, dy := c.S, c.DY(0)
		total := op.Sum(s, dy, op.Const(s, []int32{-1}), op.SumKeepDims(true))
		return List(op.Sub(s, dy, op.Mul(s, total, op.Exp(s, c.Out(0)))))
	}, "LogSoftmax")
	Register(softmaxCrossEntropy, "SoftmaxCrossEntropyWithLogits")
	Register(func(c *Call) []Grad {
		return List(op.Mul(c.S, op.ExpandDims(c.S, c.DY(0), op.Const(c.S, int32(-1))), c.Out(1)), op.Output{})
	}, "SparseSoftmaxCrossEntropyWithLogits")
	Register(func(c *Call) []Grad { return List(op.Mul(c.S, c.In(0), c.DY(0))) }, "L2Loss")
	Register(conv2D, "Conv2D")
	Register(func(c *Call) []Grad {
		a := c.Node.Attrs
		return List(op.MaxPoolGrad(c.S, c.In(0), c.Out(0), c.DY(0), a.Ints("ksize"), a.Ints("strides"), a.String("padding"),
			op.MaxPoolGradExplicitPaddings(a.Ints("explicit_paddings")), op.MaxPoolGradDataFormat(a.String("data_format"))))
	}, "MaxPool")
	Register(func(c *Call) []Grad {
		a := c.Node.Attrs
		return List(op.AvgPoolGrad(c.S, op.Shape(c.S, c.In(0)), c.DY(0), a.Ints("ksize"), a.Ints("strides"), a.String("padding"),
			op.AvgPoolGradDataFormat(a.String("data_format"))))
	}, "AvgPool")
	Register(func(c *Call) []Grad {
		a := c.Node.Attrs
		return List(op.LRNGrad(c.S, c.DY(0), c.In(0), c.Out(0), op.LRNGradDepthRadius(int64(a.Int("depth_radius"))),
			op.LRNGradBias(a.Float("bias")), op.LRNGradAlpha(a.Float("alpha")), op.LRNGradBeta(a.Float("beta"))))
	}, "LRN")
	NotDifferentiable("InTopK", "InTopKV2", "RandomUniform", "RandomStandardNormal", "TruncatedNormal", "RandomUniformInt", "RandomShuffle")
}

// softmaxCrossEntropy uses the gradient that the operation computed beside the loss, and log-softmax for the labels'.
func softmaxCrossEntropy(c *Call) []Grad {
	s, axis := c.S, op.Const(c.S, int32(-1))
	dLoss := op.ExpandDims(s, c.DY(0), axis)
	dLogits := op.Mul(s, dLoss, c.Out(1))
	dLabels := op.Mul(s, dLoss, op.Neg(s, op.LogSoftmax(s, c.In(0))))
	if second := c.Grad(1); !second.IsNone() { // the loss's gradient was itself differentiated
		p, g := op.Softmax(s, c.In(0)), Densify(s, second)
		inner := op.Sum(s, op.Mul(s, g, p), op.Const(s, []int32{-1}), op.SumKeepDims(true))
		dLogits = op.AddV2(s, dLogits, op.Mul(s, op.Sub(s, g, inner), p))
	}
	return List(dLogits, dLabels)
}

func conv2D(c *Call) []Grad {
	s, a := c.S, c.Node.Attrs
	strides, padding := a.Ints("strides"), a.String("padding")
	dx := op.Conv2DBackpropInput(s, op.Shape(s, c.In(0)), c.In(1), c.DY(0), strides, padding,
		op.Conv2DBackpropInputExplicitPaddings(a.Ints("explicit_paddings")), op.Conv2DBackpropInputDataFormat(a.String("data_format")),
		op.Conv2DBackpropInputDilations(a.Ints("dilations")))
	df := op.Conv2DBackpropFilter(s, c.In(0), op.Shape(s, c.In(1)), c.DY(0), strides, padding,
		op.Conv2DBackpropFilterExplicitPaddings(a.Ints("explicit_paddings")), op.Conv2DBackpropFilterDataFormat(a.String("data_format")),
		op.Conv2DBackpropFilterDilations(a.Ints("dilations")))
	return List(dx, df)
}
