package imageops

import (
	"math"

	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	in, out := []string{"images: dtype", "transforms: float32", "output_shape: int32"}, []string{"transformed_images: dtype"}
	attrs := []string{
		"dtype: {uint8, int32, int64, float16, bfloat16, float32, float64}", "interpolation: string", "fill_mode: string = 'CONSTANT'",
	}
	project := func(name, doc string, in, attrs []string) {
		kernel.Register(kernel.Op{
			Def: opdef.Def{Name: name, Doc: doc, In: in, Out: out, Attrs: attrs, Shape: projectiveShape},
			Kernels: kernel.ByType("dtype", kernel.Table{
				tensor.Uint8: newProjective(fromNumber[uint8]()), tensor.Int32: newProjective(fromNumber[int32]()),
				tensor.Int64: newProjective(fromNumber[int64]()), tensor.Float32: newProjective(fromNumber[float32]()),
				tensor.Float64:  newProjective(fromNumber[float64]()),
				tensor.Float16:  newProjective(conversion[tensor.Float16Elem]{tensor.Float16Elem.Float32, tensor.Float16Of}),
				tensor.BFloat16: newProjective(conversion[tensor.BFloat16Elem]{tensor.BFloat16Elem.Float32, tensor.BFloat16Of}),
			}),
		})
	}
	const doc = "Computes a projective transform of images. Output pixel (x, y) is the input pixel at " +
		"((a0*x + a1*y + a2)/k, (b0*x + b1*y + b2)/k), k = c0*x + c1*y + 1, for transforms [a0, a1, a2, b0, b1, b2, c0, c1]"
	project("ImageProjectiveTransformV2", doc+". Points outside of the image are 0, or follow fill_mode.", in, attrs)
	project("ImageProjectiveTransformV3", doc+". Points outside of the image are fill_value, or follow fill_mode.", append(in[:3:3], "fill_value: float32"), attrs)
	project("ImageProjectiveTransform", doc+". Points outside of the image are 0. From tf.contrib.image of TensorFlow 1.4 to 1.15.", in[:2], attrs[:2])
}

func projectiveShape(c *opdef.ShapeContext) error {
	images, err := opdef.WithRank(c.In[0], 4)
	if err != nil {
		return err
	}
	if len(c.In) < 3 {
		c.Out[0] = images
		return nil
	}
	return sizedShape(c, images.Dim(0), 2, images.Dim(3))
}

// conversion converts elements to float32 and back.
type conversion[T any] struct {
	to   func(T) float32
	from func(float32) T
}

func fromNumber[T number]() conversion[T] {
	return conversion[T]{func(v T) float32 { return float32(v) }, func(x float32) T { return T(x) }}
}

// border maps a coordinate into an axis of n pixels.
type border func(x float32, n int) float32

var borders = map[string]border{
	"CONSTANT": func(x float32, _ int) float32 { return x },
	"NEAREST":  clamp,
	"REFLECT":  reflect,
	"WRAP":     wrap,
}

func clamp(x float32, n int) float32 { return max(0, min(x, float32(n-1))) }

// reflect extends abcd as dcba|abcd|dcba.
func reflect(x float32, n int) float32 {
	if n <= 1 {
		return 0
	}
	period := float32(2 * n)
	switch {
	case x < 0:
		x += period * float32(math.Trunc(float64(-x/period)))
		if x < -float32(n) {
			x += period
		} else {
			x = -x - 1
		}
	case x > float32(n-1):
		x -= period * float32(math.Trunc(float64(x/period)))
		if x >= float32(n) {
			x = period - x - 1
		}
	}
	return clamp(x, n)
}

// wrap extends abcd as abcd|abcd|abcd.
func wrap(x float32, n int) float32 {
	if n <= 1 {
		return 0
	}
	steps := func(x float32) float32 { return float32(math.Trunc(float64(x / float32(n-1)))) }
	switch {
	case x < 0:
		x += float32(n) * (steps(-x) + 1)
	case x > float32(n-1):
		x -= float32(n) * steps(x)
	}
	return clamp(x, n)
}

func newProjective[T tensor.Elem](conv conversion[T]) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		p := &projective[T]{conversion: conv}
		switch kind := c.Attrs.String("interpolation"); kind {
		case "NEAREST":
		case "BILINEAR":
			p.bilinear = true
		default:
			return nil, status.InvalidArgumentf("Invalid interpolation %s. Supported types: NEAREST, BILINEAR", kind)
		}
		mode, given := c.Attrs["fill_mode"].(string)
		if !given {
			mode = "CONSTANT"
		}
		if p.border = borders[mode]; p.border == nil {
			return nil, status.InvalidArgumentf("Invalid mode %s. Supported types: REFLECT, WRAP, CONSTANT, NEAREST", mode)
		}
		return p, nil
	}
}

type projective[T tensor.Elem] struct {
	conversion[T]
	bilinear bool
	border   border
}

// Compute implements [kernel.Kernel].
func (p *projective[T]) Compute(ctx *kernel.Context) error {
	images, transforms := ctx.Input(0), ctx.Input(1)
	switch {
	case images.Rank() != 4:
		return status.InvalidArgumentf("Input images must have rank 4")
	case transforms.Rank() != 2 || transforms.Dim(1) != 8 || transforms.Dim(0) != 1 && transforms.Dim(0) != images.Dim(0):
		return status.InvalidArgumentf("Input transform should be num_images x 8 or 1 x 8")
	}
	height, width := images.Dim(1), images.Dim(2)
	if ctx.NumInputs() > 2 {
		size := ctx.Input(2)
		switch {
		case size.Rank() != 1:
			return status.InvalidArgumentf("output shape must be 1-dimensional%v", size.Shape())
		case size.Dim(0) != 2:
			return status.InvalidArgumentf("output shape must have two elements%v", size.Shape())
		}
		height, width = int(tensor.Values[int32](size)[0]), int(tensor.Values[int32](size)[1])
	}
	var fill T
	if ctx.NumInputs() > 3 {
		v := ctx.Input(3)
		if v.Rank() != 0 {
			return status.InvalidArgumentf("fill_value must be a scalar%v", v.Shape())
		}
		fill = p.from(tensor.Values[float32](v)[0])
	}
	if height <= 0 || width <= 0 {
		return status.InvalidArgumentf("output dimensions must be positive")
	}
	out, err := ctx.Allocate(0, tensor.Shape{int64(images.Dim(0)), int64(height), int64(width), int64(images.Dim(3))})
	if err != nil || out.NumElements() == 0 {
		return err
	}
	z, x, a := tensor.Values[T](out), tensor.Values[T](images), tensor.Values[float32](transforms)
	row := width * images.Dim(3)
	parallel.For(images.Dim(0)*height, max(1, elementwise.Grain(20)/row), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			image, y := i/height, i%height
			t := a[:8]
			if transforms.Dim(0) > 1 {
				t = a[8*image : 8*image+8]
			}
			s := source[T]{x: x[image*images.Dim(1)*images.Dim(2)*images.Dim(3):], height: images.Dim(1), width: images.Dim(2), depth: images.Dim(3), fill: fill}
			p.row(z[i*row:(i+1)*row], s, t, y)
		}
	})
	return nil
}

// source is an input image.
type source[T any] struct {
	x                    []T
	height, width, depth int
	fill                 T
}

func (s *source[T]) at(y, x, channel int) T {
	if y < 0 || y >= s.height || x < 0 || x >= s.width {
		return s.fill
	}
	return s.x[(y*s.width+x)*s.depth+channel]
}

// row computes row y of an output.
func (p *projective[T]) row(z []T, s source[T], t []float32, y int) {
	for x := range len(z) / s.depth {
		pixel := z[x*s.depth : (x+1)*s.depth]
		fx, fy := float32(x), float32(y)
		k := t[6]*fx + t[7]*fy + 1
		if k == 0 {
			for c := range pixel {
				pixel[c] = s.fill
			}
			continue
		}
		sx := p.border((t[0]*fx+t[1]*fy+t[2])/k, s.width)
		sy := p.border((t[3]*fx+t[4]*fy+t[5])/k, s.height)
		for c := range pixel {
			if p.bilinear {
				pixel[c] = p.between(&s, sy, sx, c)
			} else {
				pixel[c] = s.at(pixelOf(math.Round(float64(sy))), pixelOf(math.Round(float64(sx))), c)
			}
		}
	}
}

// pixelOf converts a coordinate to an integer. Coordinates far outside of any image become -1.
func pixelOf(x float64) int {
	if !(x > -1 && x < math.MaxInt32) {
		return -1
	}
	return int(x)
}

// between interpolates along x, then along y.
func (p *projective[T]) between(s *source[T], y, x float32, channel int) T {
	top, left := float32(math.Floor(float64(y))), float32(math.Floor(float64(x)))
	bottom, right := top+1, left+1
	along := func(y float32) float32 {
		row := pixelOf(float64(y))
		return (right-x)*p.to(s.at(row, pixelOf(float64(left)), channel)) + (x-left)*p.to(s.at(row, pixelOf(float64(right)), channel))
	}
	return p.from((bottom-y)*along(top) + (y-top)*along(bottom))
}
