package nn

import "github.com/weft-ml/weft/op"

// Pool holds the settings of a pooling over windows. Lists of sizes have one number for each
// dimension, or one number for all.
type Pool struct {
	Size    []int   // 2 if nil
	Strides []int   // Size if nil
	Padding Padding // [Valid] if ""
}

// MaxPooling1D takes the maximum of windows of sequences [batch, time, channels].
type MaxPooling1D Pool

// MaxPooling2D takes the maximum of windows of images [batch, height, width, channels].
type MaxPooling2D Pool

// MaxPooling3D takes the maximum of windows of volumes [batch, depth, height, width, channels].
type MaxPooling3D Pool

// AveragePooling1D takes the mean of windows of sequences, without padding.
type AveragePooling1D Pool

// AveragePooling2D takes the mean of windows of images, without padding.
type AveragePooling2D Pool

// AveragePooling3D takes the mean of windows of volumes, without padding.
type AveragePooling3D Pool

// Apply implements [Layer].
func (l *MaxPooling1D) Apply(c *Context, x op.Output) op.Output {
	return (*Pool)(l).apply(c.Layer(l, "max_pooling1d"), x, 1, true)
}

// Apply implements [Layer].
func (l *MaxPooling2D) Apply(c *Context, x op.Output) op.Output {
	return (*Pool)(l).apply(c.Layer(l, "max_pooling2d"), x, 2, true)
}

// Apply implements [Layer].
func (l *MaxPooling3D) Apply(c *Context, x op.Output) op.Output {
	return (*Pool)(l).apply(c.Layer(l, "max_pooling3d"), x, 3, true)
}

// Apply implements [Layer].
func (l *AveragePooling1D) Apply(c *Context, x op.Output) op.Output {
	return (*Pool)(l).apply(c.Layer(l, "average_pooling1d"), x, 1, false)
}

// Apply implements [Layer].
func (l *AveragePooling2D) Apply(c *Context, x op.Output) op.Output {
	return (*Pool)(l).apply(c.Layer(l, "average_pooling2d"), x, 2, false)
}

// Apply implements [Layer].
func (l *AveragePooling3D) Apply(c *Context, x op.Output) op.Output {
	return (*Pool)(l).apply(c.Layer(l, "average_pooling3d"), x, 3, false)
}

func (l *Pool) apply(c *Context, x op.Output, rank int, maximum bool) op.Output {
	s := c.Scope
	channels, size := c.size(x, -1, rank+2), c.sizes("window", l.Size, rank, 2)
	if channels == 0 || size == nil {
		return op.Output{}
	}
	strides := size
	if l.Strides != nil {
		if strides = c.sizes("stride", l.Strides, rank, 1); strides == nil {
			return op.Output{}
		}
	}
	padding := string(l.Padding.orValid())
	if rank == 3 {
		if maximum {
			return c.done(x, op.MaxPool3D(s, x, around(size), around(strides), padding), false)
		}
		return c.done(x, op.AvgPool3D(s, x, around(size), around(strides), padding), false)
	}
	in := x
	if rank == 1 {
		in = op.ExpandDims(s, x, op.Const(s, int32(1)))
	}
	var y op.Output
	if maximum {
		y = op.MaxPool(s, in, around(image(size)), around(image(strides)), padding)
	} else {
		y = op.AvgPool(s, in, around(image(size)), around(image(strides)), padding)
	}
	if rank == 1 {
		y = op.Squeeze(s, y, op.SqueezeSqueezeDims([]int64{1}))
	}
	return c.done(x, y, false)
}

// GlobalPool holds the settings of a pooling over all places: [batch, sizes…, channels] becomes
// [batch, channels].
type GlobalPool struct {
	KeepDims bool // the sizes become 1 instead
}

// GlobalAveragePooling1D takes the mean over the time. Masked steps do not count.
type GlobalAveragePooling1D GlobalPool

// GlobalAveragePooling2D takes the mean over height and width.
type GlobalAveragePooling2D GlobalPool

// GlobalAveragePooling3D takes the mean over depth, height and width.
type GlobalAveragePooling3D GlobalPool

// GlobalMaxPooling1D takes the maximum over the time.
type GlobalMaxPooling1D GlobalPool

// GlobalMaxPooling2D takes the maximum over height and width.
type GlobalMaxPooling2D GlobalPool

// GlobalMaxPooling3D takes the maximum over depth, height and width.
type GlobalMaxPooling3D GlobalPool

// Apply implements [Layer].
func (l *GlobalAveragePooling1D) Apply(c *Context, x op.Output) op.Output {
	in := c.Layer(l, "global_average_pooling1d")
	mask := c.Mask(x)
	if mask.Node == nil {
		return (*GlobalPool)(l).mean(in, x, 1)
	}
	s := in.Scope
	weight := castLike(s, op.ExpandDims(s, mask, op.Const(s, int32(2))), x)
	total := sum(s, op.Mul(s, x, weight), l.KeepDims, 1)
	return in.done(x, op.RealDiv(s, total, sum(s, weight, l.KeepDims, 1)), false)
}

// Apply implements [Layer].
func (l *GlobalAveragePooling2D) Apply(c *Context, x op.Output) op.Output {
	return (*GlobalPool)(l).mean(c.Layer(l, "global_average_pooling2d"), x, 2)
}

// Apply implements [Layer].
func (l *GlobalAveragePooling3D) Apply(c *Context, x op.Output) op.Output {
	return (*GlobalPool)(l).mean(c.Layer(l, "global_average_pooling3d"), x, 3)
}

// Apply implements [Layer].
func (l *GlobalMaxPooling1D) Apply(c *Context, x op.Output) op.Output {
	return (*GlobalPool)(l).max(c.Layer(l, "global_max_pooling1d"), x, 1)
}

// Apply implements [Layer].
func (l *GlobalMaxPooling2D) Apply(c *Context, x op.Output) op.Output {
	return (*GlobalPool)(l).max(c.Layer(l, "global_max_pooling2d"), x, 2)
}

// Apply implements [Layer].
func (l *GlobalMaxPooling3D) Apply(c *Context, x op.Output) op.Output {
	return (*GlobalPool)(l).max(c.Layer(l, "global_max_pooling3d"), x, 3)
}

func (l *GlobalPool) mean(c *Context, x op.Output, rank int) op.Output {
	if c.size(x, -1, rank+2) == 0 {
		return op.Output{}
	}
	return c.done(x, mean(c.Scope, x, l.KeepDims, between(rank)...), false)
}

func (l *GlobalPool) max(c *Context, x op.Output, rank int) op.Output {
	if c.size(x, -1, rank+2) == 0 {
		return op.Output{}
	}
	return c.done(x, op.Max(c.Scope, x, ints(c.Scope, between(rank)...), op.MaxKeepDims(l.KeepDims)), false)
}

// between returns the dimensions between batch and channels.
func between(rank int) []int {
	axes := make([]int, rank)
	for i := range axes {
		axes[i] = i + 1
	}
	return axes
}
