package nn

import (
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// poolShape returns the shape function of a pooling operation with the given number of spatial
// dimensions. name is the name of the operation in errors. withDepth permits windows that extend
// along the channels.
func poolShape(name string, spatial int, withDepth bool) opdef.ShapeFn {
	return func(c *opdef.ShapeContext) error {
		return poolOutput(c, name, spatial, withDepth, c.Attrs.Ints("ksize"), c.Attrs.Ints("strides"))
	}
}

// poolShapeV2 is like poolShape, for operations whose last two inputs are the size and the strides
// of the windows.
func poolShapeV2(c *opdef.ShapeContext) error {
	rank := 4
	if c.Attrs.String("data_format") == vectFormat {
		rank = 5
	}
	if _, err := opdef.WithRank(c.In[0], rank); err != nil {
		return err
	}
	var sizes [2][]int64
	for i := range sizes {
		in := len(c.In) - 2 + i
		s, err := opdef.WithRank(c.In[in], 1)
		if err != nil {
			return err
		}
		if err := shapefn.CheckDim(s.Dim(0), 4); err != nil {
			return err
		}
	}
	for i := range sizes {
		vals, known := shapefn.Ints(c, len(c.In)-2+i)
		if !known {
			return nil
		}
		sizes[i] = vals
	}
	return poolOutput(c, "MaxPool", 2, true, sizes[0], sizes[1])
}

func poolOutput(c *opdef.ShapeContext, name string, spatial int, withDepth bool, ksize, strides []int64) error {
	w := window{
		axes: axesOf(c.Attrs, spatial), padding: c.Attrs.String("padding"), explicit: c.Attrs.Ints("explicit_paddings"),
		dilation: []int64{1, 1, 1}[:spatial],
	}
	if c.Attrs.String("data_format") == vectFormat {
		return poolOutputByFours(c, name, ksize, strides)
	}
	in, err := opdef.WithRank(c.In[0], w.rank())
	if err != nil {
		return err
	}
	stridesName := name
	if spatial == 3 {
		stridesName += " ops"
	}
	if len(strides) != w.rank() {
		verb := " requires"
		if spatial == 3 {
			verb = " require"
		}
		return status.InvalidArgumentf("%s%s the stride attribute to contain %d values, but got: %d", stridesName, verb, w.rank(), len(strides))
	}
	if len(ksize) != w.rank() {
		return status.InvalidArgumentf("%s requires the ksize attribute to contain %d values, but got: %d", name, w.rank(), len(ksize))
	}
	if err := w.checkPadding(); err != nil {
		return err
	}
	w.stride = w.pick(strides)
	channels := in.Dim(w.channel())
	err = w.setOutput(c, in, tensor.MakePartial(w.pick(ksize)...), channels)
	if err != nil || !withDepth {
		return err
	}
	depth := window{padding: w.padding, stride: []int64{strides[w.channel()]}, dilation: []int64{1}}
	if depth.padding == paddingExplicit {
		depth.padding = paddingValid
	}
	out, err := depth.outDim(0, channels, ksize[w.channel()])
	for i := range c.Out {
		c.Out[i] = shapefn.Replace(c.Out[i], w.channel(), out)
	}
	return err
}

// poolOutputByFours is poolOutput for images in vectFormat: those of NCHW with a fifth dimension,
// along which there are no windows.
func poolOutputByFours(c *opdef.ShapeContext, name string, ksize, strides []int64) error {
	in, err := opdef.WithRank(c.In[0], 5)
	if err != nil {
		return err
	}
	groups := *c
	groups.Attrs = c.Attrs.Clone()
	groups.Attrs["data_format"] = "NCHW"
	groups.In = []tensor.PartialShape{shapefn.Sub(in, 0, 4)}
	//sizedmake:ok the outputs of a node
	groups.Out = make([]tensor.PartialShape, len(c.Out))
	if err := poolOutput(&groups, name, 2, false, ksize, strides); err != nil {
		return err
	}
	for i, out := range groups.Out {
		c.Out[i] = shapefn.Concat(out, shapefn.Sub(in, 4, 5))
	}
	return nil
}

// gradGradShape returns the shape function of second-order pooling gradients. The output has the
// shape of the pooling's output and of input like[1]. Input like[0] has the shape of the pooled
// input.
func gradGradShape(pool opdef.ShapeFn, like [2]int) opdef.ShapeFn {
	return func(c *opdef.ShapeContext) error {
		if err := pool(c); err != nil {
			return err
		}
		if _, err := opdef.MergeShapes(c.In[0], c.In[like[0]]); err != nil {
			return err
		}
		_, err := opdef.MergeShapes(c.In[like[1]], c.Out[0])
		return err
	}
}

// sizesShape returns the shape function of gradients whose output shape, of the given rank, is the
// value of input 0.
func sizesShape(rank int) opdef.ShapeFn {
	return func(c *opdef.ShapeContext) error {
		s, err := shapefn.Input(c, 0)
		if err == nil {
			s, err = opdef.WithRank(s, rank)
		}
		c.SetAll(s)
		return err
	}
}
