package imageops

import (
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterNew(opdef.Def{
		Name: "CropAndResizeGradImage", Doc: "Computes the gradient of CropAndResize with respect to the images.",
		In:    []string{"grads: float32", "boxes: float32", "box_ind: int32", "image_size: int32"},
		Out:   []string{"output: T"},
		Attrs: []string{"T: {float32, float16, float64}", "method: {'bilinear', 'nearest'} = 'bilinear'"},
		Shape: cropGradImageShape,
	}, newCropGradImage)
	kernel.RegisterFunc(opdef.Def{
		Name: "CropAndResizeGradBoxes", Doc: "Computes the gradient of CropAndResize with respect to the boxes.",
		In:  []string{"grads: float32", "image: T", "boxes: float32", "box_ind: int32"},
		Out: []string{"output: float32"},
		Attrs: []string{
			"T: {uint8, uint16, int8, int16, int32, int64, float16, float32, float64}", "method: {'bilinear'} = 'bilinear'",
		},
		Shape: func(c *opdef.ShapeContext) error {
			c.Out[0] = c.In[2]
			return nil
		},
	}, cropGradBoxes)
}

func checkCropGrads(grads *tensor.Tensor) error {
	switch {
	case grads.Rank() != 4:
		return status.InvalidArgumentf("grads image must be 4-D%v", grads.Shape())
	case grads.Dim(1) <= 0 || grads.Dim(2) <= 0:
		return status.InvalidArgumentf("grads dimensions must be positive")
	}
	return nil
}

// gradCrops checks the boxes of a gradient. The shape of the image is not yet known.
func gradCrops(grads, boxes, index *tensor.Tensor) (*crops, error) {
	c, err := newCrops(boxes, index, grads.Dim(1), grads.Dim(2), nil)
	if err != nil {
		return nil, err
	}
	if grads.Dim(0) != c.count() {
		return nil, status.InvalidArgumentf("boxes and grads have incompatible shape")
	}
	return c, nil
}

func gradImageInputs(ctx *kernel.Context) (*crops, error) {
	grads, size := ctx.Input(0), ctx.Input(3)
	if err := checkCropGrads(grads); err != nil {
		return nil, err
	}
	c, err := gradCrops(grads, ctx.Input(1), ctx.Input(2))
	if err != nil {
		return nil, err
	}
	switch {
	case size.Rank() != 1:
		return nil, status.InvalidArgumentf("image_size must be 1-D%v", size.Shape())
	case size.Dim(0) != 4:
		return nil, status.InvalidArgumentf("image_size must have 4 elements%v", size.Shape())
	}
	for _, v := range tensor.Values[int32](size) {
		c.image = append(c.image, int64(v))
	}
	switch {
	case c.image[1] <= 0 || c.image[2] <= 0:
		return nil, status.InvalidArgumentf("image dimensions must be positive")
	case int64(grads.Dim(3)) != c.image[3]:
		return nil, status.InvalidArgumentf("image_size and grads are incompatible")
	}
	return c, c.image.Check()
}

func newCropGradImage(c *kernel.Construction) (kernel.Kernel, error) {
	nearest := c.Attrs.String("method") == "nearest"
	return kernel.Func(func(ctx *kernel.Context) error {
		c, err := gradImageInputs(ctx)
		if err != nil {
			return err
		}
		out, err := ctx.Allocate(0, c.image)
		if err != nil {
			return err
		}
		if err := c.check(); err != nil {
			return err
		}
		grads := tensor.Values[float32](ctx.Input(0))
		if out.DType() == tensor.Float64 {
			sums := tensor.Values[float64](out)
			clear(sums)
			addCrops(c, sums, grads, nearest)
			return nil
		}
		sums := scratch(out)
		addCrops(c, sums, grads, nearest)
		store(out, sums)
		return nil
	}), nil
}

// addCrops adds the gradients of crops to those of the images.
func addCrops[T float32 | float64](c *crops, sums []T, grads []float32, nearest bool) {
	c.each(grads, func(box, _, _ int, atY, atX float32, grads []float32) {
		if nearest {
			to := sums[c.pixel(box, int(round(atY)), int(round(atX))):]
			for d, g := range grads {
				to[d] += T(g)
			}
			return
		}
		p := c.corners(box, atY, atX)
		for d, g := range grads {
			top, bottom := (1-p.y)*g, p.y*g
			sums[p.topLeft+d] += T((1 - p.x) * top)
			sums[p.topRight+d] += T(p.x * top)
			sums[p.bottomLeft+d] += T((1 - p.x) * bottom)
			sums[p.bottomRight+d] += T(p.x * bottom)
		}
	})
}

// each calls f for every pixel of a crop that lies inside its image. f receives the position in the
// image and the gradients of the pixel.
func (c *crops) each(grads []float32, f func(box, y, x int, atY, atX float32, grads []float32)) {
	if len(grads) == 0 {
		return // there is any number of pixels without channels
	}
	depth := int(c.image[3])
	for box := range c.count() {
		for y := range c.height {
			atY, inside := c.y(box, y)
			if !inside {
				continue
			}
			for x := range c.width {
				if atX, inside := c.x(box, x); inside {
					i := ((box*c.height+y)*c.width + x) * depth
					f(box, y, x, atY, atX, grads[i:i+depth])
				}
			}
		}
	}
}

func cropGradBoxes(ctx *kernel.Context) error {
	grads, image := ctx.Input(0), ctx.Input(1)
	if err := checkCropGrads(grads); err != nil {
		return err
	}
	switch {
	case image.Rank() != 4:
		return status.InvalidArgumentf("input image must be 4-D%v", image.Shape())
	case image.Dim(1) <= 0 || image.Dim(2) <= 0:
		return status.InvalidArgumentf("image dimensions must be positive")
	case image.Dim(3) != grads.Dim(3):
		return status.InvalidArgumentf("image, grads depth differ")
	}
	c, err := gradCrops(grads, ctx.Input(2), ctx.Input(3))
	if err != nil {
		return err
	}
	c.image = image.Shape()
	out, err := ctx.AllocateZeros(0, tensor.Shape{int64(c.count()), 4})
	if err != nil {
		return err
	}
	if err := c.check(); err != nil {
		return err
	}
	in, z := pixels(image), tensor.Values[float32](out)
	c.each(tensor.Values[float32](grads), func(box, y, x int, atY, atX float32, grads []float32) {
		p, to := c.corners(box, atY, atX), z[box*4:]
		startY, endY := shares(y, c.height, image.Dim(1))
		startX, endX := shares(x, c.width, image.Dim(2))
		for d, g := range grads {
			topLeft, topRight, bottomLeft, bottomRight := in[p.topLeft+d], in[p.topRight+d], in[p.bottomLeft+d], in[p.bottomRight+d]
			slopeY := ((1-p.x)*(bottomLeft-topLeft) + p.x*(bottomRight-topRight)) * g
			slopeX := ((1-p.y)*(topRight-topLeft) + p.y*(bottomRight-bottomLeft)) * g
			to[0] += slopeY * startY
			to[2] += slopeY * endY
			to[1] += slopeX * startX
			to[3] += slopeX * endX
		}
	})
	return nil
}

// shares returns the derivatives of the position of pixel i in the image with respect to the start
// and the end of a crop of n pixels.
func shares(i, n, size int) (start, end float32) {
	last := float32(size - 1)
	if n == 1 {
		return 0.5 * last, 0.5 * last
	}
	end = float32(i) * (last / float32(n-1))
	return last - end, end
}
