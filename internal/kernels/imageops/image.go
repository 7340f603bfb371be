// Package imageops implements the image operations: resizing, cropping, colors, boxes and codecs.
//
// An image is a tensor [height, width, channels], and a batch of images [batch, height, width,
// channels]. As in TensorFlow, operations that interpolate compute in float32 for every pixel type:
// they convert their input once and share one implementation.
package imageops

import (
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/opdef"
)

// checkDim checks dimension i of a shape of known rank.
func checkDim(s shapefn.Shape, i int, want int64) error { return shapefn.CheckDim(s.Dim(i), want) }

// sizedShape sets the output shape to [batch, height, width, channels], where an input holds height
// and width.
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

// secondShape is the shape function of gradients whose output has the shape of input 1.
func secondShape(c *opdef.ShapeContext) error {
	c.Out[0] = c.In[1]
	return nil
}
