package nn

import (
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/train"
)

// Conv1DTranspose is a transposed convolution over sequences [batch, time, channels]: the gradient
// of [Conv1D] with respect to its input. The kernel has shape [Kernel…, Filters, channels]. With
// the padding [Same] a size n becomes n * stride, with [Valid] n * stride + max(kernel - stride,
// 0). Dilation and Groups must be 1.
type Conv1DTranspose Conv

// Conv2DTranspose is [Conv1DTranspose] for images [batch, height, width, channels].
type Conv2DTranspose Conv

// Conv3DTranspose is [Conv1DTranspose] for volumes [batch, depth, height, width, channels].
type Conv3DTranspose Conv

// Apply implements [Layer].
func (l *Conv1DTranspose) Apply(c *Context, x op.Output) op.Output {
	return (*Conv)(l).transposed(c.Layer(l, "conv1d_transpose"), x, 1)
}

// Apply implements [Layer].
func (l *Conv2DTranspose) Apply(c *Context, x op.Output) op.Output {
	return (*Conv)(l).transposed(c.Layer(l, "conv2d_transpose"), x, 2)
}

// Apply implements [Layer].
func (l *Conv3DTranspose) Apply(c *Context, x op.Output) op.Output {
	return (*Conv)(l).transposed(c.Layer(l, "conv3d_transpose"), x, 3)
}

func (l *Conv) transposed(c *Context, x op.Output, rank int) op.Output {
	s, padding := c.Scope, l.Padding.orValid()
	channels := c.size(x, -1, rank+2)
	kernel, strides := c.sizes("kernel", l.Kernel, rank, 0), c.sizes("stride", l.Strides, rank, 1)
	if kernel == nil || strides == nil || channels == 0 {
		return op.Output{}
	}
	if len(l.Dilation) > 0 || l.Groups > 1 || padding == Causal {
		c.fail("a transposed convolution has no dilation, groups or causal padding")
		return op.Output{}
	}
	x = c.cast(x)
	w := c.Weight(Weight{
		Name: "kernel", Shape: append(kernel, int64(l.Filters), channels), Init: or(l.KernelInit, train.GlorotUniform()),
		Regularizer: l.KernelRegularizer, Constraint: l.KernelConstraint,
	})
	sizes := []op.Output{dim(s, x, 0)}
	if rank == 1 {
		sizes = append(sizes, op.Const(s, int32(1)))
	}
	known := []int64{-1}
	for i := range rank {
		n := c.size(x, i+1, -1) * strides[i]
		if padding == Valid {
			n += max(kernel[i]-strides[i], 0)
		}
		sizes, known = append(sizes, op.Const(s, int32(n))), append(known, n)
	}
	sizes, known = append(sizes, op.Const(s, int32(l.Filters))), append(known, int64(l.Filters))
	shape := op.Pack(s, sizes)
	var y op.Output
	switch rank {
	case 3:
		y = op.Conv3DBackpropInputV2(s, shape, w, x, around(strides), string(padding))
	case 2:
		y = op.Conv2DBackpropInput(s, shape, w, x, around(strides), string(padding))
	default:
		w, x2 := op.ExpandDims(s, w, op.Const(s, int32(0))), op.ExpandDims(s, x, op.Const(s, int32(1)))
		y = op.Conv2DBackpropInput(s, shape, w, x2, around(image(strides)), string(padding))
		y = op.Squeeze(s, y, op.SqueezeSqueezeDims([]int64{1}))
	}
	return l.finish(c, x, op.EnsureShape(s, y, tensor.MakePartial(known...)))
}
