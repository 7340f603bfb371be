package imageops

import (
	"math"
	"math/rand/v2"

	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	for _, name := range []string{"ExtractGlimpse", "ExtractGlimpseV2"} {
		kernel.RegisterNew(opdef.Def{
			Name: name, Doc: "Extracts from each image a window of the given size at its own offset. Parts of the window outside of the image are filled with noise.",
			In: []string{"input: float32", "size: int32", "offsets: float32"}, Out: []string{"glimpse: float32"},
			Attrs: []string{
				"centered: bool = true", "normalized: bool = true", "uniform_noise: bool = true", "noise: string = 'uniform'",
			},
			Shape: glimpseShape,
		}, newGlimpse)
	}
}

func glimpseShape(c *opdef.ShapeContext) error {
	in, err := opdef.WithRank(c.In[0], 4)
	if err != nil {
		return err
	}
	offsets, err := opdef.WithRank(c.In[2], 2)
	if err != nil {
		return err
	}
	batch, err := opdef.MergeDims(in.Dim(0), offsets.Dim(0))
	if err != nil {
		return err
	}
	if err := checkDim(offsets, 1, 2); err != nil {
		return err
	}
	if n := c.Attrs.String("noise"); c.Attrs.Bool("uniform_noise") && n != "" && n != "uniform" {
		return status.InvalidArgumentf("The uniform_noise should not be True when noise is not uniform")
	}
	return sizedShape(c, batch, 1, in.Dim(3))
}

// glimpses is the kernel of ExtractGlimpse. The first version of the operation always shifts
// windows by half their size.
type glimpses struct {
	first, centered, normalized bool
	noise                       func(out, image []float32, channels int)
}

func newGlimpse(c *kernel.Construction) (kernel.Kernel, error) {
	uniform, noise := c.Attrs.Bool("uniform_noise"), c.Attrs.String("noise")
	if uniform && noise != "" && noise != "uniform" {
		return nil, status.InvalidArgumentf("The uniform_noise and noise could not be specified at the same time")
	}
	g := &glimpses{
		first: c.Op.Name == "ExtractGlimpse", centered: c.Attrs.Bool("centered"), normalized: c.Attrs.Bool("normalized"),
	}
	switch {
	case noise == "uniform" || noise == "" && uniform:
		g.noise = uniformNoise
	case noise == "gaussian" || noise == "":
		g.noise = gaussianNoise
	case noise == "zero":
		g.noise = func(out, _ []float32, _ int) { clear(out) }
	default:
		return nil, status.InvalidArgumentf("The noise could only be uniform, gaussian, or zero, got%s", noise)
	}
	return kernel.Func(g.compute), nil
}

func (g *glimpses) compute(ctx *kernel.Context) error {
	in, size, offsets := ctx.Input(0), ctx.Input(1), ctx.Input(2)
	if in.Rank() != 4 {
		return status.InvalidArgumentf("input must be 4-dimensional (batch_size, height, width, depth)%v", in.Shape())
	}
	if size.Rank() != 1 || size.Dim(0) != 2 {
		return status.InvalidArgumentf("input must be a vector of size 2 (height, width)%v", size.Shape())
	}
	v := intarg.Values(size)
	if n := min(v[0], v[1]); n < 0 {
		return status.InvalidArgumentf("Expected a non-negative size, got %d", n)
	}
	shape, err := intarg.Shape([]int64{int64(in.Dim(0)), v[0], v[1], int64(in.Dim(3))})
	if err != nil {
		return err
	}
	switch {
	case offsets.Rank() != 2:
		return status.InvalidArgumentf("input must be a matrix%v", offsets.Shape())
	case offsets.Dim(0) != in.Dim(0):
		return status.InvalidArgumentf("first dimension should be batch%v", offsets.Shape())
	case offsets.Dim(1) != 2:
		return status.InvalidArgumentf("second dimension should be of size 2 (y,x)%v", offsets.Shape())
	}
	out, err := ctx.Allocate(0, shape)
	if err != nil || out.NumElements() == 0 {
		return err
	}
	at, x, z := tensor.Values[float32](offsets), tensor.Values[float32](in), tensor.Values[float32](out)
	from, to := len(x)/in.Dim(0), len(z)/in.Dim(0)
	for b := range in.Dim(0) {
		g.copy(z[b*to:(b+1)*to], x[b*from:(b+1)*from], in.Dim(3),
			g.window(at[2*b], in.Dim(1), int(v[0])), g.window(at[2*b+1], in.Dim(2), int(v[1])))
	}
	return nil
}

// window is one axis of a glimpse: n elements at position from of the image go to position to of
// the window. The window has size elements and the image has length elements.
type window struct{ from, to, n, size, length int }

func (w window) inside() bool { return w.from+w.size < w.length && w.to == 0 && w.n == w.size }

// window returns the position of a window of the given size along an axis.
func (g *glimpses) window(offset float32, length, size int) window {
	const far = 1 << 40 // beyond any image
	x, half := offset, float32(size)/2
	if g.normalized {
		x *= float32(length)
	}
	if g.centered {
		if g.first || g.normalized {
			x /= 2
		}
		x += float32(length) / 2
	}
	if g.first || g.normalized && g.centered {
		x -= half
	}
	if x != x {
		x = -far
	}
	w := window{from: int(min(max(x, -far), far)), n: size, size: size, length: length}
	switch {
	case w.from < 0:
		w.n = max(0, size+w.from)
		w.from, w.to = 0, size-w.n
	case w.from+size >= length:
		w.n = max(0, length-w.from)
	}
	w.n = min(w.n, length)
	return w
}

func (g *glimpses) copy(out, image []float32, channels int, y, x window) {
	if !y.inside() || !x.inside() {
		g.noise(out, image, channels)
	}
	for i := range y.n {
		if x.n == 0 {
			return
		}
		to, from := ((y.to+i)*x.size+x.to)*channels, ((y.from+i)*x.length+x.from)*channels
		copy(out[to:to+x.n*channels], image[from:])
	}
}

// bounds returns the smallest and the largest pixel of one channel.
func bounds(image []float32, channel, channels int) (low, high float32) {
	low, high = float32(math.Inf(1)), float32(math.Inf(-1))
	for i := channel; i < len(image); i += channels {
		low, high = min(low, image[i]), max(high, image[i])
	}
	return low, high
}

func uniformNoise(out, image []float32, _ int) {
	low, high := bounds(image, 0, 1)
	for i := range out {
		out[i] = low + rand.Float32()*(high-low)
	}
}

// gaussianNoise fills out with noise that has the mean and the standard deviation of each channel
// of the image, clamped to the range of its pixels.
func gaussianNoise(out, image []float32, channels int) {
	n := float64(len(image) / channels)
	for c := range channels {
		low, high := bounds(image, c, channels)
		var sum, squares float64
		for i := c; i < len(image); i += channels {
			sum += float64(image[i])
		}
		mean := sum / n
		for i := c; i < len(image); i += channels {
			squares += (float64(image[i]) - mean) * (float64(image[i]) - mean)
		}
		deviation := math.Sqrt(squares / n)
		for i := c; i < len(out); i += channels {
			out[i] = max(low, min(high, float32(mean+rand.NormFloat64()*deviation)))
		}
	}
}
