package array

import (
	"math"
	"slices"

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
	}, newDepthSpace(true))
	kernel.RegisterNew(opdef.Def{
		Name:  "DepthToSpace",
		Doc:   "Moves parts of the depth dimension to positions within square blocks of an image.",
		In:    []string{"input: T"},
		Out:   []string{"output: T"},
		Attrs: []string{"T: type", "block_size: int >= 2", "data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'"},
		Shape: func(c *opdef.ShapeContext) error { return depthSpaceShape(c, false) },
	}, newDepthSpace(false))
}

// imageAxes maps an image format to its height, width and channel axes. A fifth dimension holds
// inner channels.
var imageAxes = map[string][3]int{"NHWC": {1, 2, 3}, "NCHW": {2, 3, 1}, "NCHW_VECT_C": {2, 3, 1}}

// imageRank returns the number of dimensions of images in a format.
func imageRank(format string) int {
	if format == "NCHW_VECT_C" {
		return 5
	}
	return 4
}

// checkBlock returns an error if the square of a block size would overflow.
func checkBlock(size int) error {
	if size > math.MaxInt32 {
		return status.InvalidArgumentf("Attr block_size has value %d out of range for an int32", size)
	}
	return nil
}

func depthSpaceShape(c *opdef.ShapeContext, toDepth bool) error {
	format := c.Attrs.String("data_format")
	in, err := opdef.WithRank(c.In[0], imageRank(format))
	if err != nil {
		return err
	}
	size, axes := int64(c.Attrs.Int("block_size")), imageAxes[format]
	if err := checkBlock(int(size)); err != nil {
		return err
	}
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

// depthSpace moves elements between the depth and the positions within blocks.
type depthSpace struct {
	block   int
	toDepth bool
	format  string
}

// newDepthSpace returns the kernel of one direction. Formats with the channels before the positions
// exist on GPUs only, as in TensorFlow.
func newDepthSpace(toDepth bool) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		format := c.Attrs.String("data_format")
		if format != "NHWC" && c.Device.Type != kernel.GPU {
			return nil, status.InvalidArgumentf("No OpKernel was registered to support Op '%s' used by {{node %s}} with these attrs: [%s]",
				c.Op.Name, c.Node, c.Attrs.Format())
		}
		if err := checkBlock(c.Attrs.Int("block_size")); err != nil {
			return nil, err
		}
		k := &depthSpace{block: c.Attrs.Int("block_size"), toDepth: toDepth, format: format}
		return kernel.Func(k.compute), nil
	}
}

func (k *depthSpace) compute(ctx *kernel.Context) error {
	in := ctx.Input(0)
	s := in.Shape()
	if rank := imageRank(k.format); len(s) != rank {
		if k.toDepth {
			return status.InvalidArgumentf("Input rank should be %d instead of %d", rank, len(s))
		}
		return status.InvalidArgumentf("Input rank should be: %d instead of: %d", rank, len(s))
	}
	axes, b := imageAxes[k.format], int64(k.block)
	height, width, depth := axes[0], axes[1], axes[2]
	out := slices.Clone(s)
	if k.toDepth {
		if s[height]%b != 0 || s[width]%b != 0 {
			return status.InvalidArgumentf("Image width %d and height %d should be divisible by block_size: %d", s[width], s[height], k.block)
		}
		out[height], out[width], out[depth] = s[height]/b, s[width]/b, s[depth]*b*b
		return copyView(ctx, in, k.blocks(s), out)
	}
	if s[depth]%(b*b) != 0 {
		return status.InvalidArgumentf("Input depth dimension %d should be divisible by: %d", s[depth], b*b)
	}
	out[height], out[width], out[depth] = s[height]*b, s[width]*b, s[depth]/(b*b)
	return copyView(ctx, in, k.parts(s), out)
}

// blocks returns the view of images in which the positions within blocks are next to the channels.
func (k *depthSpace) blocks(s tensor.Shape) strided.View {
	v := strided.Of(s)
	if k.format == "NHWC" {
		return v.Split(1, k.block).Split(3, k.block).Permute([]int{0, 1, 3, 2, 4, 5})
	}
	// batch, channel, row, row in the block, column, column in the block
	v = v.Split(2, k.block).Split(4, k.block)
	return v.Permute([]int{0, 3, 5, 1, 2, 4, 6}[:len(v.Dims)])
}

// parts returns the view of images in which parts of the depth are next to the positions.
func (k *depthSpace) parts(s tensor.Shape) strided.View {
	v, depth := strided.Of(s), int(s[imageAxes[k.format][2]])/(k.block*k.block)
	if k.format == "NHWC" {
		return v.Split(3, k.block*depth).Split(4, depth).Permute([]int{0, 1, 3, 2, 4, 5})
	}
	// batch, row in the block, column in the block, channel, row, column
	v = v.Split(1, k.block*depth).Split(2, depth)
	return v.Permute([]int{0, 3, 4, 1, 5, 2, 6}[:len(v.Dims)])
}
