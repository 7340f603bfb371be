package imageops

import (
	"math"

	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/numeric/simd"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterNew(opdef.Def{
		Name: "CropAndResize", Doc: "Crops boxes, given by normalized corner coordinates, out of images and resizes them to a common size.",
		In:  []string{"image: T", "boxes: float32", "box_ind: int32", "crop_size: int32"},
		Out: []string{"crops: float32"},
		Attrs: []string{
			"T: {uint8, uint16, int8, int16, int32, int64, float16, float32, float64}",
			"method: {'bilinear', 'nearest'} = 'bilinear'", "extrapolation_value: float = 0.0",
		},
		Shape: cropShape,
	}, newCrop)
}

func cropShape(c *opdef.ShapeContext) error {
	in, err := opdef.WithRank(c.In[0], 4)
	if err != nil {
		return err
	}
	boxes, err := opdef.WithRank(c.In[1], 2)
	if err != nil {
		return err
	}
	index, err := opdef.WithRank(c.In[2], 1)
	if err != nil {
		return err
	}
	n, err := opdef.MergeDims(boxes.Dim(0), index.Dim(0))
	if err != nil {
		return err
	}
	if err := checkDim(boxes, 1, 4); err != nil {
		return err
	}
	return sizedShape(c, n, 3, in.Dim(3))
}

// crops describes boxes of images. index holds the image of each box, and height and width the size
// of every crop.
type crops struct {
	boxes         []float32 // y1, x1, y2, x2 of each box
	index         []int32
	height, width int
	image         tensor.Shape // [batch, height, width, depth]
}

func (c *crops) count() int { return len(c.index) }

// place returns the position, along an axis of the image, of pixel i of a crop with n pixels from
// lo to hi, and whether it is inside the image.
func place(i, n, size int, lo, hi float32) (at float32, inside bool) {
	last := float32(size - 1)
	if n > 1 {
		at = lo*last + float32(i)*((hi-lo)*last/float32(n-1))
	} else {
		at = float32(0.5 * float64(lo+hi) * float64(size-1))
	}
	return at, at >= 0 && at <= last
}

func (c *crops) y(box, i int) (float32, bool) {
	return place(i, c.height, int(c.image[1]), c.boxes[box*4], c.boxes[box*4+2])
}

func (c *crops) x(box, i int) (float32, bool) {
	return place(i, c.width, int(c.image[2]), c.boxes[box*4+1], c.boxes[box*4+3])
}

// pixel returns the index of the first element of a pixel in the image of a box.
func (c *crops) pixel(box, y, x int) int {
	return ((int(c.index[box])*int(c.image[1])+y)*int(c.image[2]) + x) * int(c.image[3])
}

// corners holds the four pixels around a position of an image, as indices of their first elements.
// y is the weight of the bottom pixels and x that of the right ones.
type corners struct {
	topLeft, topRight, bottomLeft, bottomRight int
	x, y                                       float32
}

func (c *crops) corners(box int, y, x float32) corners {
	top, bottom, left, right := int(floor(y)), int(ceil(y)), int(floor(x)), int(ceil(x))
	return corners{
		topLeft: c.pixel(box, top, left), topRight: c.pixel(box, top, right),
		bottomLeft: c.pixel(box, bottom, left), bottomRight: c.pixel(box, bottom, right),
		x: x - float32(left), y: y - float32(top),
	}
}

// newCrops checks the boxes and their image indices. If there are no boxes, it accepts any shapes.
func newCrops(boxes, index *tensor.Tensor, height, width int, image tensor.Shape) (*crops, error) {
	c := &crops{height: height, width: width, image: image}
	if boxes.NumElements() == 0 && index.NumElements() == 0 {
		return c, nil
	}
	switch {
	case boxes.Rank() != 2:
		return nil, status.InvalidArgumentf("boxes must be 2-D%v", boxes.Shape())
	case boxes.Dim(1) != 4:
		return nil, status.InvalidArgumentf("boxes must have 4 columns")
	case index.Rank() != 1:
		return nil, status.InvalidArgumentf("box_index must be 1-D%v", index.Shape())
	case index.Dim(0) != boxes.Dim(0):
		return nil, status.InvalidArgumentf("box_index has incompatible shape")
	}
	c.boxes, c.index = tensor.Values[float32](boxes), tensor.Values[int32](index)
	return c, nil
}

// check checks that the image of every box exists.
func (c *crops) check() error {
	for _, b := range c.index {
		if b < 0 || int64(b) >= c.image[0] {
			return status.OutOfRangef("box_index has values outside [0, batch_size)")
		}
	}
	return nil
}

func newCrop(c *kernel.Construction) (kernel.Kernel, error) {
	nearest, outside := c.Attrs.String("method") == "nearest", c.Attrs.Float("extrapolation_value")
	return kernel.Func(func(ctx *kernel.Context) error {
		c, err := cropInputs(ctx)
		if err != nil {
			return err
		}
		depth := int(c.image[3])
		out, err := ctx.Allocate(0, tensor.Shape{int64(c.count()), int64(c.height), int64(c.width), c.image[3]})
		if err != nil {
			return err
		}
		if err := c.check(); err != nil {
			return err
		}
		for _, v := range c.boxes {
			if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
				return status.InvalidArgumentf("Boxes contains at least one element that is not finite")
			}
		}
		in, z, row := pixels(ctx.Input(0)), tensor.Values[float32](out), c.width*depth
		if len(z) == 0 {
			return nil
		}
		parallel.For(c.count()*c.height, max(1, 1<<13/row), func(lo, hi int) {
			cut := cutter{crops: c, box: -1, outside: outside, blender: blender{channels: depth}}
			for i := lo; i < hi; i++ {
				if nearest {
					c.nearestRow(z[i*row:(i+1)*row], in, i/c.height, i%c.height, outside)
				} else {
					cut.row(z[i*row:(i+1)*row], in, i/c.height, i%c.height)
				}
			}
		})
		return nil
	}), nil
}

func cropInputs(ctx *kernel.Context) (*crops, error) {
	image, boxes, index, size := ctx.Input(0), ctx.Input(1), ctx.Input(2), ctx.Input(3)
	switch {
	case image.Rank() != 4:
		return nil, status.InvalidArgumentf("input image must be 4-D%v", image.Shape())
	case image.Dim(1) <= 0 || image.Dim(2) <= 0:
		return nil, status.InvalidArgumentf("image dimensions must be positive")
	case boxes.Rank() != 2:
		return nil, status.InvalidArgumentf("boxes must be 2-D, got: %v", boxes.Shape())
	case index.Rank() != 1:
		return nil, status.InvalidArgumentf("box_indices must be rank 1 but is shape %v", index.Shape())
	}
	c, err := newCrops(boxes, index, 0, 0, image.Shape())
	if err != nil {
		return nil, err
	}
	switch {
	case size.Rank() != 1:
		return nil, status.InvalidArgumentf("crop_size must be 1-D%v", size.Shape())
	case size.Dim(0) != 2:
		return nil, status.InvalidArgumentf("crop_size must have two elements%v", size.Shape())
	}
	v := tensor.Values[int32](size)
	if v[0] <= 0 || v[1] <= 0 {
		return nil, status.InvalidArgumentf("crop dimensions must be positive")
	}
	c.height, c.width = int(v[0]), int(v[1])
	return c, nil
}

// nearestRow fills row y of the crop of a box with the nearest pixels.
func (c *crops) nearestRow(out, in []float32, box, y int, outside float32) {
	depth := int(c.image[3])
	atY, insideY := c.y(box, y)
	for x := range c.width {
		to := out[x*depth : (x+1)*depth]
		if atX, insideX := c.x(box, x); insideX && insideY {
			copy(to, in[c.pixel(box, int(round(atY)), int(round(atX))):])
		} else {
			fill(to, outside)
		}
	}
}

func fill(z []float32, v float32) {
	for i := range z {
		z[i] = v
	}
}

// cutter fills rows of crops with interpolated pixels.
type cutter struct {
	*crops
	blender
	box         int // box that the columns belong to
	first, last int // columns [first, last) lie inside the image
	outside     float32
}

// row fills row y of the crop of a box.
func (c *cutter) row(out, in []float32, box, y int) {
	if c.box != box {
		c.enter(box)
	}
	at, inside := c.y(box, y)
	if !inside || c.first == c.last {
		fill(out, c.outside)
		return
	}
	width := int(c.image[2]) * c.channels
	top, bottom := c.pixel(box, int(floor(at)), 0), c.pixel(box, int(ceil(at)), 0)
	c.blend(out[c.first*c.channels:c.last*c.channels], in[top:][:width], in[bottom:][:width], at-floor(at))
	fill(out[:c.first*c.channels], c.outside)
	fill(out[c.last*c.channels:], c.outside)
}

// enter computes the columns of a box. Positions in the image are monotonic, so the columns inside
// of it are adjacent.
func (c *cutter) enter(box int) {
	c.box, c.first, c.last = box, 0, 0
	places := c.places[:0]
	for x := range c.width {
		at, inside := c.x(box, x)
		if !inside {
			continue
		}
		if len(places) == 0 {
			c.first = x
		}
		c.last = x + 1
		places = membudget.Append(places, simd.Between{
			Lower: int(floor(at)) * c.channels, Upper: int(ceil(at)) * c.channels, Share: at - floor(at),
		})
	}
	c.move(places)
}

// cropGradImageShape is the shape function of CropAndResizeGradImage, whose last input holds the
// shape of its output.
func cropGradImageShape(c *opdef.ShapeContext) error {
	s, err := shapefn.Input(c, 3)
	if err != nil {
		return err
	}
	c.Out[0], err = opdef.WithRank(s, 4)
	return err
}
