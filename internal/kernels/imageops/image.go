// Package imageops holds the operations on images: resizing, cropping, colours, boxes and codecs.
//
// An image is a tensor [height, width, channels], a batch of images [batch, height, width,
// channels]. Operations that interpolate compute in float32 whatever the type of the pixels, as
// TensorFlow does, so that they widen their input once and exist once.
package imageops

import (
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/opdef"
)

// checkDim checks dimension i of a shape of known rank.
func checkDim(s shapefn.Shape, i int, want int64) error { return shapefn.CheckDim(s.Dim(i), want) }

// sizedShape is the rule of operations whose output is [batch, height, width, channels] with height
// and width given by an input.
func sizedShape(c *opdef.ShapeContext, batch int64, sizeInput int, channels int64) error {
	size, err := opdef.WithRank(c.In[sizeInput], 1)
	if err != nil {
		return err
	}
	if err := checkDim(size, 0, 2); err != nil {
		return err
	}
	height, width := shapefn.Unknown, shapefn.Unknown
	if v, ok := shapefn.Ints(c, sizeInput); ok && len(v) == 2 {
		height, width = v[0], v[1]
	}
	c.Out[0] = shapefn.Of(batch, height, width, channels)
	return nil
}

// secondShape is the rule of gradients, whose output is like the second input.
func secondShape(c *opdef.ShapeContext) error {
	c.Out[0] = c.In[1]
	return nil
}
