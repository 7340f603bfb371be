package array

import (
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/opkit/strided"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterNew(opdef.Def{
		Name:  "SpaceToDepth",
		Doc:   "Moves the positions within each square block of an image to the depth dimension.",
		In:    []string{"input: T"},
		Out:   []string{"output: T"},
		Attrs: []string{"T: type", "block_size: int >= 2", "data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'"},
		Shape: func(c *opdef.ShapeContext) error { return depthSpaceShape(c, true) },
	}, newDepthSpace(spaceToDepth))
	kernel.RegisterNew(opdef.Def{
		Name:  "DepthToSpace",
		Doc:   "Moves parts of the depth dimension to positions within square blocks of an image.",
		In:    []string{"input: T"},
		Out:   []string{"output: T"},
		Attrs: []string{"T: type", "block_size: int >= 2", "data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'"},
		Shape: func(c *opdef.ShapeContext) error { return depthSpaceShape(c, false) },
	}, newDepthSpace(depthToSpace))
}

// imageAxes maps an image format to its height, width and channel axes. A fifth dimension holds
// inner channels.
var imageAxes = map[string][3]int{"NHWC": {1, 2, 3}, "NCHW": {2, 3, 1}, "NCHW_VECT_C": {2, 3, 1}}

func depthSpaceShape(c *opdef.ShapeContext, toDepth bool) error {
	format := c.Attrs.String("data_format")
	rank := 4
	if format == "NCHW_VECT_C" {
		rank = 5
	}
	in, err := opdef.WithRank(c.In[0], rank)
	if err != nil {
		return err
	}
	size, axes := int64(c.Attrs.Int("block_size")), imageAxes[format]
	dims := in.Dims()
	for _, axis := range axes[:2] {
		if toDepth {
			if dims[axis], err = shapefn.Divide(dims[axis], size); err != nil {
				return err
			}
		} else {
			dims[axis] = shapefn.Times(dims[axis], size)
		}
	}
	if toDepth {
		dims[axes[2]] = shapefn.Times(dims[axes[2]], size*size)
	} else if dims[axes[2]], err = shapefn.Divide(dims[axes[2]], size*size); err != nil {
		return err
	}
	c.Out[0] = shapefn.Of(dims...)
	return nil
}

func newDepthSpace(f func(ctx *kernel.Context, block int) error) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		if format := c.Attrs.String("data_format"); format != "NHWC" {
			return nil, status.InvalidArgumentf("No OpKernel was registered to support Op '%s' used by {{node %s}} with these attrs: [%s]",
				c.Op.Name, c.Node, c.Attrs.Format())
		}
		block := c.Attrs.Int("block_size")
		return kernel.Func(func(ctx *kernel.Context) error { return f(ctx, block) }), nil
	}
}

func spaceToDepth(ctx *kernel.Context, block int) error {
	in := ctx.Input(0)
	if in.Rank() != 4 {
		return status.InvalidArgumentf("Input rank should be 4 instead of %d", in.Rank())
	}
	s := in.Shape()
	b := int64(block)
	if s[1]%b != 0 || s[2]%b != 0 {
		return status.InvalidArgumentf("Image width %d and height %d should be divisible by block_size: %d", s[2], s[1], block)
	}
	v := strided.Of(s).Split(1, block).Split(3, block).Permute([]int{0, 1, 3, 2, 4, 5})
	return copyView(ctx, in, v, tensor.Shape{s[0], s[1] / b, s[2] / b, s[3] * b * b})
}

func depthToSpace(ctx *kernel.Context, block int) error {
	in := ctx.Input(0)
	if in.Rank() != 4 {
		return status.InvalidArgumentf("Input rank should be: 4 instead of: %d", in.Rank())
	}
	s := in.Shape()
	b := int64(block)
	if s[3]%(b*b) != 0 {
		return status.InvalidArgumentf("Input depth dimension %d should be divisible by: %d", s[3], b*b)
	}
	depth := int(s[3] / (b * b))
	v := strided.Of(s).Split(3, block*depth).Split(4, depth).Permute([]int{0, 1, 3, 2, 4, 5})
	return copyView(ctx, in, v, tensor.Shape{s[0], s[1] * b, s[2] * b, int64(depth)})
}
