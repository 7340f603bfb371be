package nn

import (
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/train"
)

// Padding says what a convolution or pooling does at the borders.
type Padding string

// The paddings.
const (
	Valid  Padding = "VALID"  // windows lie within the input
	Same   Padding = "SAME"   // zeros around the input: with strides of 1 the sizes do not change
	Causal Padding = "CAUSAL" // zeros before the input, for [Conv1D] only
)

// Conv holds the settings of a convolution. Lists of sizes have one number for each dimension, or
// one number for all. The input has shape [batch, sizes…, channels], the kernel [Kernel…,
// channels / Groups, Filters], the output [batch, sizes…, Filters].
type Conv struct {
	Filters    int
	Kernel     []int
	Strides    []int   // 1 if nil
	Padding    Padding // [Valid] if ""
	Dilation   []int   // 1 if nil
	Groups     int     // 1 if 0
	Activation Activation
	NoBias     bool

	KernelInit        train.Initializer // [train.GlorotUniform] if nil
	BiasInit          train.Initializer // [train.Zeros] if nil
	KernelRegularizer Regularizer
	KernelConstraint  Constraint
}

// Conv1D is a convolution over sequences [batch, time, channels].
type Conv1D Conv

// Conv2D is a convolution over images [batch, height, width, channels].
type Conv2D Conv

// Conv3D is a convolution over volumes [batch, depth, height, width, channels]. It has no groups.
type Conv3D Conv

// Apply implements [Layer].
func (l *Conv1D) Apply(c *Context, x op.Output) op.Output {
	return (*Conv)(l).apply(c.Layer(l, "conv1d"), x, 1)
}

// Apply implements [Layer].
func (l *Conv2D) Apply(c *Context, x op.Output) op.Output {
	return (*Conv)(l).apply(c.Layer(l, "conv2d"), x, 2)
}

// Apply implements [Layer].
func (l *Conv3D) Apply(c *Context, x op.Output) op.Output {
	return (*Conv)(l).apply(c.Layer(l, "conv3d"), x, 3)
}

func (l *Conv) apply(c *Context, x op.Output, rank int) op.Output {
	s := c.Scope
	channels, groups := c.size(x, -1, rank+2), int64(max(l.Groups, 1))
	kernel := c.sizes("kernel", l.Kernel, rank, 0)
	strides, dilation := c.sizes("stride", l.Strides, rank, 1), c.sizes("dilation", l.Dilation, rank, 1)
	switch {
	case kernel == nil, strides == nil, dilation == nil, channels == 0:
		return op.Output{}
	case l.Filters < 1, channels%groups != 0, int64(l.Filters)%groups != 0, groups > 1 && rank == 3:
		c.fail("%d filters of %d channels in %d groups are not possible", l.Filters, channels, groups)
		return op.Output{}
	}
	x = c.cast(x)
	padding := l.Padding.orValid()
	if padding == Causal {
		if rank != 1 {
			c.fail("causal padding is for sequences")
			return op.Output{}
		}
		x = op.Pad(s, x, op.Const(s, [][]int32{{0, 0}, {int32(dilation[0] * (kernel[0] - 1)), 0}, {0, 0}}))
		padding = Valid
	}
	w := c.Weight(Weight{
		Name: "kernel", Shape: append(kernel, channels/groups, int64(l.Filters)), Init: or(l.KernelInit, train.GlorotUniform()),
		Regularizer: l.KernelRegularizer, Constraint: l.KernelConstraint,
	})
	var y op.Output
	switch {
	case rank == 3:
		y = op.Conv3D(s, x, w, around(strides), string(padding), op.Conv3DDilations(around(dilation)))
	default:
		x2, w2 := x, w
		if rank == 1 {
			x2, w2 = op.ExpandDims(s, x, op.Const(s, int32(1))), op.ExpandDims(s, w, op.Const(s, int32(0)))
		}
		y = op.Conv2D(s, x2, w2, around(image(strides)), string(padding), op.Conv2DDilations(around(image(dilation))))
		if rank == 1 {
			y = op.Squeeze(s, y, op.SqueezeSqueezeDims([]int64{1}))
		}
	}
	return l.finish(c, x, y)
}

// finish adds the bias and the activation.
func (l *Conv) finish(c *Context, x, y op.Output) op.Output {
	if !l.NoBias {
		bias := Weight{Name: "bias", Shape: tensor.Shape{int64(l.Filters)}, Init: or(l.BiasInit, train.Zeros)}
		y = addBias(c.Scope, y, c.Weight(bias))
	}
	return c.done(x, l.Activation.apply(c.Scope, y), false)
}

// addBias adds a vector to the last dimension.
func addBias(s *op.Scope, y, bias op.Output) op.Output {
	if y.Node == nil || bias.Node == nil {
		return op.Output{}
	}
	return op.BiasAdd(s, y, bias)
}

// sizes returns one size for each of n dimensions, or nil after a build error. An empty list means
// byDefault; 0 means that there is no default.
func (c *Context) sizes(what string, list []int, n, byDefault int) tensor.Shape {
	if len(list) == 0 && byDefault > 0 {
		list = []int{byDefault}
	}
	if len(list) != 1 && len(list) != n {
		c.fail("%d numbers for the %s of %d dimensions", len(list), what, n)
		return nil
	}
	out := make(tensor.Shape, n)
	for i := range out {
		d := list[min(i, len(list)-1)]
		if d < 1 {
			c.fail("the %s has size %d", what, d)
			return nil
		}
		out[i] = int64(d)
	}
	return out
}

// image returns the sizes of images for those of sequences, which are images of height 1.
func image(sizes tensor.Shape) tensor.Shape {
	if len(sizes) == 1 {
		return tensor.Shape{1, sizes[0]}
	}
	return sizes
}

// around adds sizes of 1 for batch and channels.
func around(sizes tensor.Shape) []int64 {
	out := []int64{1}
	return append(append(out, sizes...), 1)
}

// orValid returns p unless it is empty, and otherwise the default.
func (p Padding) orValid() Padding {
	if p == "" {
		return Valid
	}
	return p
}
