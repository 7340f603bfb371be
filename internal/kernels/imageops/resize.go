package imageops

import (
	"math"

	"github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

const anyPixel = "T: {int8, uint8, int16, uint16, int32, int64, float16, float32, float64, bfloat16}"

func resizeShape(c *opdef.ShapeContext) error {
	in, err := opdef.WithRank(c.In[0], 4)
	if err != nil {
		return err
	}
	return sizedShape(c, in.Dim(0), 1, in.Dim(3))
}

// alignment describes which points of the input and the output coincide: their corners
// (align_corners), the centers of half-pixel coordinates (half_pixel_centers), or, if both are
// false, the upper left pixels only.
type alignment struct{ corners, centers bool }

func alignmentOf(attrs opdef.Attrs) alignment {
	return alignment{corners: attrs.Bool("align_corners"), centers: attrs.Bool("half_pixel_centers")}
}

func (a alignment) check() error {
	if a.centers && a.corners {
		return status.InvalidArgumentf("If half_pixel_centers is True, align_corners must be False.")
	}
	return nil
}

// axis is one dimension of a resized image. in and out are its sizes, and scale is the distance
// between two output pixels in the input.
type axis struct {
	in, out int
	scale   float32
	centers bool
}

func (a alignment) axis(in, out int) axis {
	x := axis{in: in, out: out, scale: float32(in) / float32(out), centers: a.centers}
	if a.corners && in > 1 && out > 1 {
		x.scale = float32(in-1) / float32(out-1)
	}
	return x
}

// at returns the position of output pixel i in the input.
func (a axis) at(i int) float32 {
	if a.centers {
		return (float32(i)+0.5)*a.scale - 0.5
	}
	return float32(i) * a.scale
}

func (a axis) clamp(i int) int { return min(a.in-1, max(0, i)) }

// resizing describes the resizing of a batch of images. In a gradient, it describes the forward
// operation.
type resizing struct {
	batch, channels int
	y, x            axis
}

func (r *resizing) inRow() int  { return r.x.in * r.channels }
func (r *resizing) outRow() int { return r.x.out * r.channels }

func (r *resizing) outShape() tensor.Shape {
	return tensor.Shape{int64(r.batch), int64(r.y.out), int64(r.x.out), int64(r.channels)}
}

// rows calls f for all output rows, on several cores. The argument in of f holds the pixels of the
// row's image.
func (r *resizing) rows(in, out []float32, f func(y int, in, out []float32)) {
	image, width := r.y.in*r.inRow(), r.outRow()
	parallel.For(r.batch*r.y.out, max(1, 1<<14/max(width, 1)), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			b := i / r.y.out
			f(i%r.y.out, in[b*image:(b+1)*image], out[i*width:(i+1)*width])
		}
	})
}

// newResizing checks the inputs images and size of a resizing operation.
func newResizing(ctx *kernel.Context, a alignment) (*resizing, error) {
	if err := a.check(); err != nil {
		return nil, err
	}
	in, size := ctx.Input(0), ctx.Input(1)
	switch {
	case in.Rank() != 4:
		return nil, status.InvalidArgumentf("input must be 4-dimensional%v", in.Shape())
	case in.Dim(3) <= 0:
		return nil, status.InvalidArgumentf("image must have at least one channel")
	case in.Dim(1) <= 0 || in.Dim(2) <= 0:
		return nil, status.InvalidArgumentf("input image must be of non-zero size")
	case in.Dim(1) >= math.MaxInt32 || in.Dim(2) >= math.MaxInt32:
		return nil, status.InvalidArgumentf("input sizes must be between 0 and max int32")
	}
	height, width, err := sizeInput(size)
	if err != nil {
		return nil, err
	}
	if height <= 0 || width <= 0 {
		return nil, status.InvalidArgumentf("output dimensions must be positive")
	}
	return &resizing{batch: in.Dim(0), channels: in.Dim(3), y: a.axis(in.Dim(1), height), x: a.axis(in.Dim(2), width)}, nil
}

// sizeInput returns the height and the width that an input holds.
func sizeInput(size *tensor.Tensor) (height, width int, err error) {
	switch {
	case size.Rank() != 1:
		return 0, 0, status.InvalidArgumentf("shape_t must be 1-dimensional%v", size.Shape())
	case size.NumElements() != 2:
		return 0, 0, status.InvalidArgumentf("shape_t must have two elements%v", size.Shape())
	}
	v := tensor.Values[int32](size)
	return int(v[0]), int(v[1]), nil
}

// newResizingGradient checks the inputs of a gradient: the gradient of the resized images, and the
// original images.
func newResizingGradient(ctx *kernel.Context, a alignment) (*resizing, error) {
	if err := a.check(); err != nil {
		return nil, err
	}
	grads, original := ctx.Input(0), ctx.Input(1)
	switch {
	case grads.Rank() != 4:
		return nil, status.InvalidArgumentf("input_grad must be 4-dimensional%v", grads.Shape())
	case grads.Dim(1) <= 0 || grads.Dim(2) <= 0:
		return nil, status.InvalidArgumentf("resized dimensions must be positive")
	case original.Rank() != 4:
		return nil, status.InvalidArgumentf("original_image must be 4-dimensional%v", original.Shape())
	case original.Dim(1) <= 0 || original.Dim(2) <= 0:
		return nil, status.InvalidArgumentf("original dimensions must be positive")
	case original.Dim(1) >= math.MaxInt32 || original.Dim(2) >= math.MaxInt32:
		return nil, status.InvalidArgumentf("original sizes must be between 0 and max int32")
	}
	return &resizing{
		batch: grads.Dim(0), channels: grads.Dim(3),
		y: a.axis(original.Dim(1), grads.Dim(1)), x: a.axis(original.Dim(2), grads.Dim(2)),
	}, nil
}

func (r *resizing) inShape() tensor.Shape {
	return tensor.Shape{int64(r.batch), int64(r.y.in), int64(r.x.in), int64(r.channels)}
}

// resize returns the constructor of an interpolating kernel. The function that prepare returns
// fills output row y from the pixels of an image. onDevice does it all on a device; it may be nil.
func resize(prepare func(r *resizing) func(y int, in, out []float32), onDevice func(r *resizing, d *device.Device, out, in *tensor.Tensor) error) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		a := alignmentOf(c.Attrs)
		return kernel.Func(func(ctx *kernel.Context) error {
			r, err := newResizing(ctx, a)
			if err != nil {
				return err
			}
			out, err := ctx.Allocate(0, r.outShape())
			if err != nil || out.NumElements() == 0 {
				return err // images may have any size if there are none
			}
			if d := device.Of(out); d != nil && onDevice != nil {
				return onDevice(r, d, out, ctx.Input(0))
			}
			r.rows(pixels(ctx.Input(0)), tensor.Values[float32](out), prepare(r))
			return nil
		}), nil
	}
}

// gradientFuncs computes a gradient.
type gradientFuncs struct {
	// add adds the gradient of one resized image to that of the original. add64 does the same in
	// float64.
	add   func(r *resizing, original, resized []float32)
	add64 func(r *resizing, original []float64, resized []float32)
	// onDevice computes the gradient on a device; it may be nil.
	onDevice func(r *resizing, d *device.Device, out, grads *tensor.Tensor) error
}

// resizeGradient returns the constructor of a gradient kernel.
func resizeGradient(f gradientFuncs) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		a := alignmentOf(c.Attrs)
		return kernel.Func(func(ctx *kernel.Context) error {
			r, err := newResizingGradient(ctx, a)
			if err != nil {
				return err
			}
			out, err := ctx.Allocate(0, r.inShape())
			if err != nil || out.NumElements() == 0 {
				return err // as in resize
			}
			if d := device.Of(out); d != nil && f.onDevice != nil {
				return f.onDevice(r, d, out, ctx.Input(0))
			}
			grads := tensor.Values[float32](ctx.Input(0))
			if out.DType() == tensor.Float64 {
				sums := tensor.Values[float64](out)
				clear(sums)
				addImages(r, f.add64, sums, grads)
				return nil
			}
			sums := scratch(out)
			addImages(r, f.add, sums, grads)
			store(out, sums)
			return nil
		}), nil
	}
}

func addImages[T float32 | float64](r *resizing, add func(r *resizing, original []T, resized []float32), sums []T, grads []float32) {
	in, resized := r.y.in*r.inRow(), r.y.out*r.outRow()
	parallel.For(r.batch, 1, func(lo, hi int) {
		for b := lo; b < hi; b++ {
			add(r, sums[b*in:(b+1)*in], grads[b*resized:(b+1)*resized])
		}
	})
}

func floor(x float32) float32 { return float32(math.Floor(float64(x))) }
func ceil(x float32) float32  { return float32(math.Ceil(float64(x))) }
func round(x float32) float32 { return float32(math.Round(float64(x))) }
