package imageops

import (
	"math"

	"github.com/weft-ml/weft/internal/numeric/philox"
	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	const doc = "Generates a random box for cropping an image, which covers a minimum share of one of the given boxes."
	boxAttrs := []string{
		"aspect_ratio_range: list(float) = [0.75, 1.3300000429153442]", "area_range: list(float) = [0.05000000074505806, 1.0]",
		"max_attempts: int = 100", "use_image_if_no_bounding_boxes: bool = false",
	}
	in, out := []string{"image_size: T", "bounding_boxes: float32"}, []string{"begin: T", "size: T", "bboxes: float32"}
	types := "T: {uint8, int8, int16, int32, int64}"
	stateful := func(name string, in, attrs []string) {
		kernel.RegisterNew(opdef.Def{
			Name: name, Doc: doc, In: in, Out: out, Stateful: true, Shape: distortedShape,
			Attrs: append(append([]string{types, "seed: int = 0", "seed2: int = 0"}, attrs...), boxAttrs...),
		}, newDistortedBox)
	}
	stateful("SampleDistortedBoundingBox", in, []string{"min_object_covered: float = 0.10000000149011612"})
	stateful("SampleDistortedBoundingBoxV2", append(in[:2:2], "min_object_covered: float32"), nil)
	kernel.RegisterNew(opdef.Def{
		Name: "StatelessSampleDistortedBoundingBox", Doc: doc + " The result depends only on the inputs and the seed.",
		In: append(in[:2:2], "min_object_covered: float32", "seed: Tseed"), Out: out,
		Attrs: append([]string{types, "Tseed: {int32, int64}"}, boxAttrs...), Shape: distortedShape,
	}, newDistortedBox)
}

func distortedShape(c *opdef.ShapeContext) error {
	size, err := opdef.WithRank(c.In[0], 1)
	if err != nil {
		return err
	}
	if err := checkDim(size, 0, 3); err != nil {
		return err
	}
	boxes, err := opdef.WithRank(c.In[1], 3)
	if err != nil {
		return err
	}
	if err := checkDim(boxes, 2, 4); err != nil {
		return err
	}
	if len(c.In) > 2 {
		if _, err := opdef.WithRank(c.In[2], 0); err != nil {
			return err
		}
	}
	if len(c.In) > 3 {
		seed, err := opdef.WithRank(c.In[3], 1)
		if err != nil {
			return err
		}
		if err := checkDim(seed, 0, 2); err != nil {
			return err
		}
	}
	c.Out[0], c.Out[1], c.Out[2] = shapefn.Of(3), shapefn.Of(3), shapefn.Of(1, 1, 4)
	return nil
}

// distortedBox draws boxes with an aspect ratio and a relative area in given ranges.
type distortedBox struct {
	covered      float32 // minimum share of one of the given boxes that a drawn box must cover
	aspect, area [2]float32
	attempts     int
	wholeImage   bool // use the whole image if there are no boxes
	source       *philox.Source
}

func newDistortedBox(c *kernel.Construction) (kernel.Kernel, error) {
	d := &distortedBox{attempts: c.Attrs.Int("max_attempts"), wholeImage: c.Attrs.Bool("use_image_if_no_bounding_boxes")}
	if len(c.Inputs) == 2 {
		if d.covered = c.Attrs.Float("min_object_covered"); d.covered < 0 {
			return nil, status.InvalidArgumentf("Min object covered must be non-negative: %g", d.covered)
		}
	}
	if len(c.Inputs) < 4 {
		d.source = philox.NewSource(c.Attrs.Int("seed"), c.Attrs.Int("seed2"))
	}
	aspect, area := c.Attrs.Floats("aspect_ratio_range"), c.Attrs.Floats("area_range")
	switch {
	case len(aspect) != 2:
		return nil, status.InvalidArgumentf("Aspect ratio range field must specify 2 dimensions")
	case !(aspect[0] > 0 && aspect[1] > 0):
		return nil, status.InvalidArgumentf("Aspect ratio range must be non-negative: [%g, %g]", aspect[0], aspect[1])
	case len(area) != 2:
		return nil, status.InvalidArgumentf("Area range field must specify 2 dimensions")
	case !(area[0] > 0 && area[1] > 0):
		return nil, status.InvalidArgumentf("Area range must be non-negative: [%g, %g]", area[0], area[1])
	case area[0] > 1 || area[1] > 1:
		return nil, status.InvalidArgumentf("Area range must be less then or equal to 1.0: [%g, %g]", area[0], area[1])
	case d.attempts <= 0:
		return nil, status.InvalidArgumentf("Max attempts must be non-negative: %d", d.attempts)
	}
	d.aspect, d.area = [2]float32(aspect), [2]float32(area)
	return d, nil
}

// rect is a box in pixels.
type rect struct{ x0, y0, x1, y1 int }

func (r rect) area() float32 { return float32((r.x1 - r.x0) * (r.y1 - r.y0)) }

func (r rect) intersect(s rect) rect {
	t := rect{max(r.x0, s.x0), max(r.y0, s.y0), min(r.x1, s.x1), min(r.y1, s.y1)}
	if t.x0 > t.x1 || t.y0 > t.y1 {
		return rect{}
	}
	return t
}

// Compute implements [kernel.Kernel].
func (d *distortedBox) Compute(ctx *kernel.Context) error {
	image, err := imageSize(ctx.Input(0))
	if err != nil {
		return err
	}
	boxes, err := d.boxes(ctx.Input(1), image)
	if err != nil {
		return err
	}
	covered := d.covered
	if ctx.NumInputs() > 2 {
		in := ctx.Input(2)
		if in.Rank() != 0 {
			return status.InvalidArgumentf("min_object_covered must be 0-D, got shape %v", in.Shape())
		}
		if covered = tensor.Values[float32](in)[0]; !(covered >= 0) {
			return status.InvalidArgumentf("Min object covered must be non-negative: %g", covered)
		}
	}
	words, err := d.words(ctx)
	if err != nil {
		return err
	}
	box := image
	for range d.attempts {
		if ctx.Context().Err() != nil {
			return status.FromContext(ctx.Context(), "drawing a box")
		}
		aspect := words.Unit32()*(d.aspect[1]-d.aspect[0]) + d.aspect[0]
		if r, ok := d.draw(words, image, aspect); ok && covers(r, boxes, covered) {
			box = r
			break
		}
	}
	return write(ctx, box, image)
}

func (d *distortedBox) words(ctx *kernel.Context) (*philox.Words, error) {
	if d.source != nil {
		return philox.NewWords(d.source.TakeWords(4 * d.attempts)), nil
	}
	seed := ctx.Input(3)
	if seed.Rank() != 1 || seed.Dim(0) != 2 {
		return nil, status.InvalidArgumentf("seed must have shape [2], not %v", seed.Shape())
	}
	s := intarg.Values(seed)
	return philox.NewWords(philox.FromPair(uint64(s[0]), uint64(s[1]))), nil
}

func imageSize(size *tensor.Tensor) (rect, error) {
	if size.Rank() != 1 {
		return rect{}, status.InvalidArgumentf("image_size must be 1-dimensional%v", size.Shape())
	}
	if size.Dim(0) != 3 {
		return rect{}, status.InvalidArgumentf("image_size must contain 3 elements%v", size.Shape())
	}
	dims := intarg.Values(size)
	for i, name := range []string{"height", "width"} {
		if dims[i] < 0 || dims[i] >= math.MaxInt32 {
			return rect{}, status.InvalidArgumentf("image %s cannot be >= int32 max", name)
		}
	}
	return rect{x1: int(dims[1]), y1: int(dims[0])}, nil
}

// boxes returns the given boxes in pixels.
func (d *distortedBox) boxes(in *tensor.Tensor, image rect) ([]rect, error) {
	if in.Rank() != 3 {
		return nil, status.InvalidArgumentf("input boxes must be 3-dimensional [batch, num_boxes, coords]: %v", in.Shape())
	}
	if in.Dim(2) != 4 {
		return nil, status.InvalidArgumentf("bounding boxes must have shape [4] or [*, 4], got %v", in.Shape())
	}
	v := tensor.Values[float32](in)
	if len(v) == 0 {
		if !d.wholeImage {
			return nil, status.InvalidArgumentf("No bounding boxes provided as input. One must enable use_image_if_no_bounding_boxes if you wish to not provide any bounding boxes.")
		}
		return []rect{image}, nil
	}
	boxes := membudget.Make[rect](len(v) / 4)
	for i := range boxes {
		for _, x := range v[4*i : 4*i+4] {
			if !(x >= 0 && x <= 1) {
				return nil, status.InvalidArgumentf("All bounding box coordinates must be in [0.0, 1.0]: %g", x)
			}
		}
		width, height := float32(image.x1), float32(image.y1)
		boxes[i] = rect{int(v[4*i+1] * width), int(v[4*i] * height), int(v[4*i+3] * width), int(v[4*i+2] * height)}
	}
	return boxes, nil
}

// covers reports whether r covers at least the given share of one of the boxes.
func covers(r rect, boxes []rect, share float32) bool {
	if r.area() < 1 {
		return false
	}
	for _, b := range boxes {
		if size := b.area(); size >= 1 && r.intersect(b).area()/size >= share {
			return true
		}
	}
	return false
}

// draw draws a box with the given ratio of width to height: first its height, which must lie
// between those of the smallest and the largest area, then its position. It returns false if no box
// fits.
func (d *distortedBox) draw(words *philox.Words, image rect, aspect float32) (rect, bool) {
	if image.x1 <= 0 || image.y1 <= 0 || d.area[0] > d.area[1] {
		return rect{}, false
	}
	least := d.area[0] * float32(image.x1) * float32(image.y1)
	most := d.area[1] * float32(image.x1) * float32(image.y1)
	widthOf := func(height int) int { return nearestInt(float32(height) * aspect) }
	height, tallest := nearestInt(sqrt32(least/aspect)), nearestInt(sqrt32(most/aspect))
	if widthOf(tallest) > image.x1 {
		const epsilon = float32(0.0000001)
		tallest = int((float64(image.x1) + 0.5 - float64(epsilon)) / float64(aspect))
		if widthOf(tallest) > image.x1 {
			tallest--
		}
	}
	tallest = min(tallest, image.y1)
	height = min(height, tallest)
	if height < tallest {
		height += int(words.Below(uint32(tallest - height + 1)))
	}
	width := widthOf(height)
	// Rounding may have moved the area out of its bounds, by one row.
	if float32(width*height) < least {
		height++
		width = widthOf(height)
	}
	if float32(width*height) > most {
		height--
		width = widthOf(height)
	}
	area := float32(width * height)
	if area < least || area > most || width > image.x1 || height > image.y1 || width <= 0 || height <= 0 {
		return rect{}, false
	}
	r := rect{}
	if height < image.y1 {
		r.y0 = int(words.Below(uint32(image.y1 - height)))
	}
	if width < image.x1 {
		r.x0 = int(words.Below(uint32(image.x1 - width)))
	}
	r.x1, r.y1 = r.x0+width, r.y0+height
	return r, true
}

func nearestInt(x float32) int { return int(math.RoundToEven(float64(x))) }

func sqrt32(x float32) float32 { return float32(math.Sqrt(float64(x))) }

// write sets the outputs: begin and size of the box, for Slice, and its corners in normalized
// coordinates.
func write(ctx *kernel.Context, box, image rect) error {
	for i, v := range [2][3]int64{{int64(box.y0), int64(box.x0), 0}, {int64(box.y1 - box.y0), int64(box.x1 - box.x0), -1}} {
		out, err := ctx.Allocate(i, tensor.Shape{3})
		if err != nil {
			return err
		}
		intarg.Set(out, v[:])
	}
	out, err := ctx.Allocate(2, tensor.Shape{1, 1, 4})
	if err != nil {
		return err
	}
	height, width := float32(image.y1), float32(image.x1)
	copy(tensor.Values[float32](out), []float32{
		float32(box.y0) / height, float32(box.x0) / width, float32(box.y1) / height, float32(box.x1) / width,
	})
	return nil
}
