package imageops

import (
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	attrs := []string{"T: {float32, float16} = float32"}
	table := kernel.Table{
		tensor.Float32: kernel.Stateless(drawBoxes(func(v float32) float32 { return v })),
		tensor.Float16: kernel.Stateless(drawBoxes(tensor.Float16Of)),
	}
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "DrawBoundingBoxes", Doc: "Draws the outlines of boxes, given by normalized corner coordinates, on images.",
			In: []string{"images: T", "boxes: float32"}, Out: []string{"output: T"}, Attrs: attrs, Shape: drawShape,
		},
		Kernels: kernel.ByType("T", table),
	})
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "DrawBoundingBoxesV2", Doc: "Draws the outlines of boxes on images, cycling through the given colors.",
			In: []string{"images: T", "boxes: float32", "colors: float32"}, Out: []string{"output: T"}, Attrs: attrs,
			Shape: imageShape,
		},
		Kernels: kernel.ByType("T", table),
	})
}

const depthError = "Channel depth should be either 1 (GRY), 3 (RGB), or 4 (RGBA)"

func drawable(depth int64) bool { return depth == 1 || depth == 3 || depth == 4 }

func drawShape(c *opdef.ShapeContext) error {
	images, err := opdef.WithRank(c.In[0], 4)
	if err != nil {
		return err
	}
	if d := images.Dim(3); d >= 0 && !drawable(d) {
		return status.InvalidArgumentf(depthError)
	}
	boxes, err := opdef.WithRank(c.In[1], 3)
	if err != nil {
		return err
	}
	c.Out[0] = c.In[0]
	return checkDim(boxes, 2, 4)
}

// palette holds the default colors, used cyclically. Each is red, green, blue and alpha.
var palette = [][]float32{
	{1, 1, 0, 1}, {0, 0, 1, 1}, {1, 0, 0, 1}, {0, 1, 0, 1}, {0.5, 0, 0.5, 1},
	{0.5, 0.5, 0, 1}, {0.5, 0, 0, 1}, {0, 0, 0.5, 1}, {0, 1, 1, 1}, {1, 0, 1, 1},
}

// boxColors returns the colors of input 2, or the default ones: white for images of one channel and
// the palette otherwise.
func boxColors(ctx *kernel.Context, depth int) ([][]float32, error) {
	if ctx.NumInputs() == 3 {
		colors := ctx.Input(2)
		switch {
		case colors.Rank() != 2:
			return nil, status.InvalidArgumentf("colors must be a 2-D matrix%v", colors.Shape())
		case colors.Dim(1) < depth:
			return nil, status.InvalidArgumentf("colors must have equal or more channels than the image provided: %v", colors.Shape())
		}
		v, n := tensor.Values[float32](colors), colors.Dim(1)
		table := membudget.MakeCap[[]float32](colors.Dim(0))
		for ; len(v) > 0; v = v[n:] {
			table = append(table, v[:depth])
		}
		if len(table) > 0 {
			return table, nil
		}
	}
	if depth == 1 {
		return [][]float32{{1}}, nil
	}
	return palette, nil
}

func checkDrawing(images, boxes *tensor.Tensor) error {
	switch {
	case images.Rank() != 4:
		return status.InvalidArgumentf("The rank of the images should be 4")
	case boxes.Rank() != 3:
		return status.InvalidArgumentf("The rank of the boxes tensor should be 3")
	case images.Dim(0) != boxes.Dim(0):
		return status.InvalidArgumentf("The batch sizes should be the same")
	case !drawable(int64(images.Dim(3))):
		return status.InvalidArgumentf(depthError)
	case boxes.Dim(2) != 4:
		return status.InvalidArgumentf("The size of the third dimension of the box must be 4. Received: %d", boxes.Dim(2))
	}
	return nil
}

func drawBoxes[T tensor.Elem](of func(float32) T) kernel.Func {
	return func(ctx *kernel.Context) error {
		images, boxes := ctx.Input(0), ctx.Input(1)
		if err := checkDrawing(images, boxes); err != nil {
			return err
		}
		depth := images.Dim(3)
		colors, err := boxColors(ctx, depth)
		if err != nil {
			return err
		}
		out, err := ctx.AllocateLike(0, images)
		if err != nil {
			return err
		}
		z, b := tensor.Values[T](out), tensor.Values[float32](boxes)
		copy(z, tensor.Values[T](images))
		size, n := images.Dim(1)*images.Dim(2)*depth, boxes.Dim(1)
		for i := range images.Dim(0) * n {
			if err := ctx.Context().Err(); err != nil {
				return err // an outline may be as long as the image
			}
			c := canvas{height: images.Dim(1), width: images.Dim(2)}
			image, color := z[i/n*size:][:size], colors[i%n%len(colors)]
			c.outline(b[i*4:i*4+4], func(y, x int) {
				for d := range depth {
					image[(y*c.width+x)*depth+d] = of(color[d])
				}
			})
		}
		return nil
	}
}

type canvas struct{ height, width int }

// outline calls dot for the pixels of a box's outline that lie on the canvas.
func (c canvas) outline(box []float32, dot func(y, x int)) {
	top, bottom := pixelAt(box[0], c.height), pixelAt(box[2], c.height)
	left, right := pixelAt(box[1], c.width), pixelAt(box[3], c.width)
	if top > bottom || left > right || top >= c.height || bottom < 0 || left >= c.width || right < 0 {
		return
	}
	for _, y := range []int{top, bottom} {
		for x := max(left, 0); x <= min(right, c.width-1) && y >= 0 && y < c.height; x++ {
			dot(y, x)
		}
	}
	for _, x := range []int{left, right} {
		for y := max(top, 0); y <= min(bottom, c.height-1) && x >= 0 && x < c.width; y++ {
			dot(y, x)
		}
	}
}

// pixelAt returns the pixel at a normalized coordinate of an axis. Coordinates far outside, and
// NaN, are off the canvas.
func pixelAt(place float32, size int) int {
	const far = 1 << 40
	at := place * float32(size-1)
	if at != at {
		return -far
	}
	return int(min(max(at, -far), far))
}
