package summary

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"math"

	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Image is an encoded image.
type Image struct {
	Height, Width int    // in pixels
	Channels      int    // 1 gray, 2 gray and alpha, 3 RGB, 4 RGB and alpha
	Encoded       []byte // a PNG file if [NewImage] has made it
}

// NewImage encodes pixels as a PNG file. pixels holds the rows from top to bottom, each with its
// pixels from left to right, each with its channels (1, 3 or 4). The error has the code
// InvalidArgument.
func NewImage(height, width, channels int, pixels []byte) (Image, error) {
	if height <= 0 || width <= 0 || height > math.MaxInt32/width || len(pixels) != height*width*channels {
		return Image{}, status.InvalidArgumentf("an image of %d by %d pixels with %d channels does not have %d bytes",
			height, width, channels, len(pixels))
	}
	m, err := picture(height, width, channels, pixels)
	if err != nil {
		return Image{}, err
	}
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		return Image{}, status.Internalf("PNG encoding failed: %w", err)
	}
	return Image{height, width, channels, b.Bytes()}, nil
}

// picture converts pixels to an image for the encoder.
func picture(height, width, channels int, pixels []byte) (image.Image, error) {
	rect := image.Rect(0, 0, width, height)
	switch channels {
	case 1:
		return &image.Gray{Pix: pixels, Stride: width, Rect: rect}, nil
	case 3:
		m := image.NewNRGBA(rect)
		for i := range height * width {
			copy(m.Pix[4*i:], pixels[3*i:3*i+3])
			m.Pix[4*i+3] = 255
		}
		return m, nil
	case 4:
		return transparent{&image.NRGBA{Pix: pixels, Stride: 4 * width, Rect: rect}}, nil
	default:
		return nil, status.InvalidArgumentf("an image cannot have %d channels", channels)
	}
}

// transparent is an image whose alpha channel is encoded even if all pixels are opaque.
type transparent struct{ m *image.NRGBA }

func (t transparent) ColorModel() color.Model { return t.m.ColorModel() }
func (t transparent) Bounds() image.Rectangle { return t.m.Bounds() }
func (t transparent) At(x, y int) color.Color { return t.m.At(x, y) }
func (t transparent) Opaque() bool            { return false }

// Images encodes the first limit images of a batch: a tensor of shape [batch, height, width,
// channels] and type uint8, float16, float32 or float64. Values of an image of a floating-point
// type are scaled so that the largest is 255. If there are negative values they are scaled so that
// zero is 128 and the largest magnitude differs from it by 127. Pixels that are not finite get the
// color bad, which must have at least as many channels. The error has the code InvalidArgument.
func Images(t *tensor.Tensor, limit int, bad []byte) ([]Image, error) {
	s := t.Shape()
	if len(s) != 4 || s[3] != 1 && s[3] != 3 && s[3] != 4 {
		return nil, status.InvalidArgumentf("Tensor must be 4-D with last dim 1, 3, or 4, not %v", s)
	}
	if max(s[0], s[1], s[2]) > math.MaxInt32 || s[1]*s[2] >= 1<<29 {
		return nil, status.InvalidArgumentf("Tensor too large for summary %v", s)
	}
	if s[1]*s[2] == 0 {
		return nil, status.InvalidArgumentf("input tensor must have non-zero dims. Found: [%d, %d, %d, %d].", s[0], s[1], s[2], s[3])
	}
	height, width, channels := int(s[1]), int(s[2]), int(s[3])
	if t.DType() != tensor.Uint8 && len(bad) < channels {
		return nil, status.InvalidArgumentf("expected depth <= bad_color.size, got depth = %d, bad_color.size = %d", channels, len(bad))
	}
	size := height * width * channels
	images := make([]Image, min(limit, int(s[0])))
	for i := range images {
		pixels, err := scale(t, i*size, (i+1)*size, channels, bad)
		if err != nil {
			return nil, err
		}
		if images[i], err = NewImage(height, width, channels, pixels); err != nil {
			return nil, err
		}
	}
	return images, nil
}

// scale converts the elements lo to hi of a tensor to the channels of pixels.
func scale(t *tensor.Tensor, lo, hi, channels int, bad []byte) ([]byte, error) {
	switch t.DType() {
	case tensor.Uint8:
		return tensor.Values[uint8](t)[lo:hi], nil
	case tensor.Float32:
		return scaleValues(tensor.Values[float32](t)[lo:hi], channels, bad, func(v, s, o float32) float32 { return v*s + o })
	case tensor.Float64:
		return scaleValues(tensor.Values[float64](t)[lo:hi], channels, bad, func(v float64, s, o float32) float64 {
			return v*float64(s) + float64(o)
		})
	case tensor.Float16:
		half := tensor.Values[tensor.Float16Elem](t)[lo:hi]
		vals := make([]float32, len(half))
		for i, v := range half {
			vals[i] = v.Float32()
		}
		round := func(v float32) float32 { return tensor.Float16Of(v).Float32() }
		return scaleValues(vals, channels, bad, func(v, s, o float32) float32 { return round(round(v*round(s)) + o) })
	default:
		return nil, status.InvalidArgumentf("an image cannot be of type %v", t.DType())
	}
}

// scaleValues maps values to bytes. affine computes value * scale + offset with the rounding of the
// type.
func scaleValues[T float32 | float64](vals []T, channels int, bad []byte, affine func(v T, scale, offset float32) T) ([]byte, error) {
	least, most := float32(math.Inf(1)), float32(math.Inf(-1))
	for i := 0; i < len(vals); i += channels {
		if finite(vals[i : i+channels]) {
			for _, v := range vals[i : i+channels] {
				least, most = min(least, float32(v)), max(most, float32(v))
			}
		}
	}
	const epsilon = 1e-6 // smaller magnitudes count as zero; TensorFlow's value
	var factor, offset float32
	if least < 0 {
		offset = 128
		if top := max(-least, most, -most); top >= epsilon {
			factor = 127 / top
		}
	} else if most >= epsilon {
		factor = 255 / most
	}
	pixels := make([]byte, len(vals))
	for i := 0; i < len(vals); i += channels {
		if !finite(vals[i : i+channels]) {
			copy(pixels[i:i+channels], bad)
			continue
		}
		for j, v := range vals[i : i+channels] {
			pixels[i+j] = uint8(int32(affine(v, factor, offset)))
		}
	}
	return pixels, nil
}

func finite[T float32 | float64](vals []T) bool {
	for _, v := range vals {
		if v-v != 0 {
			return false
		}
	}
	return true
}
