package imageops

import (
	"math"

	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	attrs := []string{"T: {float16, bfloat16, float32, float64} = float32"}
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "RGBToHSV", Doc: "Converts images from RGB to HSV. All values are in [0,1].",
			In: []string{"images: T"}, Out: []string{"output: T"}, Attrs: attrs, Shape: colorShape,
		},
		Kernels: kernel.ByType("T", convert(toHSV[float32], toHSV[float64])),
	})
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "HSVToRGB", Doc: "Converts images from HSV to RGB. All values are in [0,1].",
			In: []string{"images: T"}, Out: []string{"output: T"}, Attrs: attrs, Shape: colorShape,
		},
		Kernels: kernel.ByType("T", convert(toRGB[float32], toRGB[float64])),
	})
}

func colorShape(c *opdef.ShapeContext) error {
	in, err := opdef.WithRankAtLeast(c.In[0], 1)
	if err != nil || !in.RankKnown() {
		return err
	}
	if err := checkDim(in, -1, 3); err != nil {
		return err
	}
	dims := in.Dims()
	dims[len(dims)-1] = 3
	c.Out[0] = tensor.MakePartial(dims...)
	return nil
}

// convert returns the kernels of a conversion of one pixel. 16-bit types are converted in float32.
func convert(pixel32 func(a, b, c float32) (float32, float32, float32), pixel64 func(a, b, c float64) (float64, float64, float64)) kernel.Table {
	short := kernel.Stateless(func(ctx *kernel.Context) error {
		out, err := colorOutput(ctx)
		if err != nil {
			return err
		}
		z := scratch(out)
		eachPixel(z, pixels(ctx.Input(0)), pixel32)
		store(out, z)
		return nil
	})
	return kernel.Table{
		tensor.Float16: short, tensor.BFloat16: short, tensor.Float32: short,
		tensor.Float64: kernel.Stateless(func(ctx *kernel.Context) error {
			out, err := colorOutput(ctx)
			if err != nil {
				return err
			}
			eachPixel(tensor.Values[float64](out), tensor.Values[float64](ctx.Input(0)), pixel64)
			return nil
		}),
	}
}

func colorOutput(ctx *kernel.Context) (*tensor.Tensor, error) {
	in := ctx.Input(0)
	if in.Rank() < 1 {
		return nil, status.InvalidArgumentf("input must be at least 1D%v", in.Shape())
	}
	if n := in.Dim(in.Rank() - 1); n != 3 {
		return nil, status.Errorf(status.FailedPrecondition, "input must have 3 channels but input only has %d channels.", n)
	}
	return ctx.AllocateLike(0, in)
}

func eachPixel[T float32 | float64](z, x []T, f func(a, b, c T) (T, T, T)) {
	parallel.For(len(x)/3, 1<<12, func(lo, hi int) {
		for i := 3 * lo; i < 3*hi; i += 3 {
			z[i], z[i+1], z[i+2] = f(x[i], x[i+1], x[i+2])
		}
	})
}

// toHSV converts a color by the hexcone model (Smith, "Color Gamut Transform Pairs", 1978).
func toHSV[T float32 | float64](r, g, b T) (h, s, v T) {
	v = max(r, g, b)
	extent := v - min(r, g, b)
	if v > 0 {
		s = extent / v
	}
	if !(extent > 0) {
		return 0, s, v
	}
	norm := 1 / extent * (T(1) / 6)
	switch v {
	case r:
		h = norm * (g - b)
	case g:
		h = norm*(b-r) + T(2)/6
	default:
		h = norm*(r-g) + T(4)/6
	}
	if h < 0 {
		h++
	}
	return h, s, v
}

func toRGB[T float32 | float64](h, s, v T) (r, g, b T) {
	at := h * 6
	channel := func(x T) T { return (1 - s + s*min(max(x, 0), 1)) * v }
	return channel(abs(at-3) - 1), channel(2 - abs(at-2)), channel(2 - abs(at-4))
}

func abs[T float32 | float64](x T) T { return T(math.Abs(float64(x))) }
