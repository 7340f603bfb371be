package imageops

import (
	"math"

	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/numeric/simd"
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	adjust("AdjustContrastv2", "contrast_factor", "Adjusts the contrast of images: scales the difference of each pixel from the mean of its channel.",
		contrastShape, adjustContrast)
	adjust("AdjustHue", "delta", "Adjusts the hue of images by delta, a fraction of the full color circle.",
		imageShape, adjustColors("delta", hueAdder))
	adjust("AdjustSaturation", "scale", "Adjusts the saturation of images by a factor.",
		imageShape, adjustColors("scale", saturationScaler))
}

// adjust registers an operation on images with a scalar input. TensorFlow computes it for float16
// on GPUs only.
func adjust(name, arg, doc string, shape opdef.ShapeFn, compute kernel.Func) {
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: name, Doc: doc, In: []string{"images: T", arg + ": float32"}, Out: []string{"output: T"},
			Attrs: []string{"T: {float16, float32} = float32"}, Shape: shape,
		},
		Kernels: []kernel.Impl{
			{Types: []kernel.Constraint{kernel.OfType("T", tensor.Float32)}, New: kernel.Stateless(compute)},
			{Device: kernel.Host, Types: []kernel.Constraint{kernel.OfType("T", tensor.Float16)}, New: kernel.Stateless(compute)},
		},
	})
}

// inFloat32 calls f with the elements of images and of the output, which may be of type float16. z
// and x may be the same memory if the tensors are.
func inFloat32(out, in *tensor.Tensor, f func(z, x []float32)) {
	if in.DType() == tensor.Float32 {
		f(tensor.Values[float32](out), tensor.Values[float32](in))
		return
	}
	z, x := membudget.Make[float32](out.NumElements()), membudget.Make[float32](in.NumElements())
	elementwise.Widen(x, tensor.Values[tensor.Float16Elem](in))
	f(z, x)
	elementwise.Narrow(tensor.Values[tensor.Float16Elem](out), z)
}

// imageShape is the shape function of operations on any number of images that keep their shape.
func imageShape(c *opdef.ShapeContext) error {
	in, err := opdef.WithRankAtLeast(c.In[0], 3)
	c.Out[0] = in
	return err
}

func contrastShape(c *opdef.ShapeContext) error {
	if _, err := opdef.WithRank(c.In[1], 0); err != nil {
		return err
	}
	return imageShape(c)
}

func adjustContrast(ctx *kernel.Context) error {
	in, factor := ctx.Input(0), ctx.Input(1)
	switch {
	case in.Rank() < 3:
		return status.InvalidArgumentf("input must be at least 3-D, got shape%v", in.Shape())
	case factor.Rank() != 0:
		return status.InvalidArgumentf("contrast_factor must be scalar: %v", factor.Shape())
	}
	out, err := ctx.AllocateLike(0, in)
	if err != nil || out.NumElements() == 0 {
		return err
	}
	channels := in.Dim(in.Rank() - 1)
	size := in.Dim(in.Rank()-3) * in.Dim(in.Rank()-2) * channels
	f := tensor.Value[float32](factor)
	inFloat32(out, in, func(z, x []float32) {
		parallel.For(len(x)/size, max(1, 1<<13/size), func(lo, hi int) {
			for i := lo; i < hi; i++ {
				contrast(z[i*size:(i+1)*size], x[i*size:(i+1)*size], channels, f)
			}
		})
	})
	return nil
}

// contrastBlock is the approximate number of elements of the repeated means. They fit into the L1
// cache.
const contrastBlock = 1024

func contrast(z, x []float32, channels int, factor float32) {
	mean := channelMeans(z, x, channels)
	for done := channels; done < len(mean); {
		done += copy(mean[done:], mean[:done])
	}
	for len(x) > 0 {
		n := min(len(x), len(mean))
		simd.Lerp(z[:n], mean, x, factor)
		x, z = x[n:], z[n:]
	}
}

// channelMeans returns the mean of each channel, repeated for several pixels. It adds the pixels
// pairwise, in z, which keeps rounding errors small.
func channelMeans(z, x []float32, channels int) []float32 {
	n := len(x) / channels
	for left := n; left > 1; x = z {
		right := left / 2
		left -= right
		simd.Add(z[:right*channels], x, x[left*channels:])
		copy(z[right*channels:left*channels], x[right*channels:])
	}
	mean := membudget.Make[float32](max(1, contrastBlock/channels) * channels)
	for c := range channels {
		mean[c] = x[c] * (1 / float32(n))
	}
	return mean
}

func adjustColors(arg string, adjuster func(by float32) func(r, g, b float32) (float32, float32, float32)) kernel.Func {
	return func(ctx *kernel.Context) error {
		in, by := ctx.Input(0), ctx.Input(1)
		switch {
		case in.Rank() < 3:
			return status.InvalidArgumentf("input must be at least 3-D, got shape%v", in.Shape())
		case by.Rank() != 0:
			return status.InvalidArgumentf("%s must be scalar: %v", arg, by.Shape())
		case in.Dim(in.Rank()-1) != 3:
			return status.InvalidArgumentf("input must have 3 channels but instead has %d channels.", in.Dim(in.Rank()-1))
		}
		pixels, f := *in, adjuster(tensor.Value[float32](by))
		out, err := ctx.Forward(0, 0)
		if err != nil {
			return err
		}
		inFloat32(out, &pixels, func(z, x []float32) { eachPixel(z, x, f) })
		return nil
	}
}

func hueAdder(delta float32) func(r, g, b float32) (float32, float32, float32) {
	return func(r, g, b float32) (float32, float32, float32) {
		low, high := min(r, g, b), max(r, g, b)
		if low == high || low != low || high != high {
			return hueToRGB(delta*6, low, high)
		}
		h, _, _ := toHSV(r, g, b)
		return hueToRGB(h*6+delta*6, low, high)
	}
}

// hueToRGB returns the color of a hue, in sixths of the full circle, with channels between low and
// high.
func hueToRGB(hue, low, high float32) (r, g, b float32) {
	hue = float32(math.Mod(float64(hue), 6))
	if hue < 0 {
		hue += 6
	}
	sector := int(hue)
	share := hue - float32(sector)
	if sector%2 == 1 {
		share = 1 - share
	}
	mid := low + share*(high-low)
	switch sector {
	case 0:
		return high, mid, low
	case 1:
		return mid, high, low
	case 2:
		return low, high, mid
	case 3:
		return low, mid, high
	case 4:
		return mid, low, high
	}
	return high, low, mid
}

func saturationScaler(scale float32) func(r, g, b float32) (float32, float32, float32) {
	return func(r, g, b float32) (float32, float32, float32) {
		h, s, v := toHSV(r, g, b)
		chroma := min(1, max(0, s*scale)) * v
		if h*6 >= 6 { // a hue just below 0, rounded up by a full turn, has no color in TensorFlow
			return v - chroma, v - chroma, v - chroma
		}
		return hueToRGB(h*6, v-chroma, v)
	}
}
