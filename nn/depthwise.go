package nn

import (
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/train"
)

// Depthwise holds the settings of a convolution of each channel with Multiplier kernels of its own.
// The kernel has shape [Kernel…, channels, Multiplier], the output channels * Multiplier channels.
type Depthwise struct {
	Kernel     []int
	Strides    []int   // 1 if nil; the same in all dimensions
	Padding    Padding // [Valid] if ""
	Dilation   []int   // 1 if nil
	Multiplier int     // 1 if 0
	Activation Activation
	NoBias     bool

	KernelInit        train.Initializer // [train.GlorotUniform] if nil
	BiasInit          train.Initializer // [train.Zeros] if nil
	KernelRegularizer Regularizer
	KernelConstraint  Constraint
}

// DepthwiseConv1D is a depthwise convolution over sequences [batch, time, channels].
type DepthwiseConv1D Depthwise

// DepthwiseConv2D is a depthwise convolution over images [batch, height, width, channels].
type DepthwiseConv2D Depthwise

// Apply implements [Layer].
func (l *DepthwiseConv1D) Apply(c *Context, x op.Output) op.Output {
	return (*Depthwise)(l).apply(c.Layer(l, "depthwise_conv1d"), x, 1)
}

// Apply implements [Layer].
func (l *DepthwiseConv2D) Apply(c *Context, x op.Output) op.Output {
	return (*Depthwise)(l).apply(c.Layer(l, "depthwise_conv2d"), x, 2)
}

func (l *Depthwise) apply(c *Context, x op.Output, rank int) op.Output {
	y, channels := l.filter(c, x, rank, "kernel")
	if y.Node == nil {
		return y
	}
	if !l.NoBias {
		y = addBias(c.Scope, y, c.Weight(Weight{Name: "bias", Shape: tensor.Shape{channels}, Init: or(l.BiasInit, train.Zeros)}))
	}
	return c.done(x, l.Activation.apply(c.Scope, y), false)
}

// filter adds the convolution alone. It returns the result and its number of channels.
func (l *Depthwise) filter(c *Context, x op.Output, rank int, name string) (op.Output, int64) {
	s, multiplier := c.Scope, int64(max(l.Multiplier, 1))
	channels := c.size(x, -1, rank+2)
	kernel := c.sizes("kernel", l.Kernel, rank, 0)
	strides, dilation := c.sizes("stride", l.Strides, rank, 1), c.sizes("dilation", l.Dilation, rank, 1)
	if kernel == nil || strides == nil || dilation == nil || channels == 0 {
		return op.Output{}, 0
	}
	x = c.cast(x)
	w := c.Weight(Weight{
		Name: name, Shape: append(kernel, channels, multiplier), Init: or(l.KernelInit, train.GlorotUniform()),
		Regularizer: l.KernelRegularizer, Constraint: l.KernelConstraint,
	})
	if rank == 1 {
		x, w = op.ExpandDims(s, x, op.Const(s, int32(1))), op.ExpandDims(s, w, op.Const(s, int32(0)))
		strides = tensor.Shape{strides[0], strides[0]} // the operation needs equal strides
	}
	y := op.DepthwiseConv2dNative(s, x, w, around(strides), string(l.Padding.orValid()),
		op.DepthwiseConv2dNativeDilations(around(image(dilation))))
	if rank == 1 {
		y = op.Squeeze(s, y, op.SqueezeSqueezeDims([]int64{1}))
	}
	return y, channels * multiplier
}

// SeparableConv2D is a depthwise convolution followed by one of size 1 with Filters filters. Its
// variables are "depthwise_kernel", "pointwise_kernel" and "bias".
type SeparableConv2D struct {
	Filters int
	Depthwise
}

// Apply implements [Layer].
func (l *SeparableConv2D) Apply(c *Context, x op.Output) op.Output {
	c = c.Layer(l, "separable_conv2d")
	y, channels := l.filter(c, x, 2, "depthwise_kernel")
	if y.Node == nil {
		return y
	}
	w := c.Weight(Weight{
		Name: "pointwise_kernel", Shape: tensor.Shape{1, 1, channels, int64(l.Filters)}, Init: train.GlorotUniform(),
	})
	y = op.Conv2D(c.Scope, y, w, []int64{1, 1, 1, 1}, string(Valid))
	if !l.NoBias {
		bias := Weight{Name: "bias", Shape: tensor.Shape{int64(l.Filters)}, Init: or(l.BiasInit, train.Zeros)}
		y = addBias(c.Scope, y, c.Weight(bias))
	}
	return c.done(x, l.Activation.apply(c.Scope, y), false)
}
