package imageops

import (
	"math"
	"strings"

	"github.com/weft-ml/weft/internal/format/jpeg"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	contents, jpegAttrs := []string{"contents: string"}, []string{
		"channels: int = 0", "ratio: int = 1", "fancy_upscaling: bool = true", "try_recover_truncated: bool = false",
		"acceptable_fraction: float = 1.0", "dct_method: string = ''",
	}
	for _, def := range []opdef.Def{
		{Name: "DecodeJpeg", Doc: "Decodes a JPEG image.", In: contents, Out: []string{"image: uint8"}, Attrs: jpegAttrs, Shape: decodeShape},
		{
			Name: "DecodeAndCropJpeg", Doc: "Decodes and crops a JPEG image to the window [y, x, height, width].",
			In: []string{"contents: string", "crop_window: int32"}, Out: []string{"image: uint8"}, Attrs: jpegAttrs, Shape: decodeCropShape,
		},
		{
			Name: "DecodePng", Doc: "Decodes a PNG image.", In: contents, Out: []string{"image: dtype"},
			Attrs: []string{"channels: int = 0", "dtype: {uint8, uint16} = uint8"}, Shape: decodeShape,
		},
		{Name: "DecodeGif", Doc: "Decodes the frames of a GIF image.", In: contents, Out: []string{"image: uint8"}, Shape: decodeGIFShape},
		{
			Name: "DecodeBmp", Doc: "Decodes the first frame of a BMP image.", In: contents, Out: []string{"image: uint8"},
			Attrs: []string{"channels: int = 0"}, Shape: decodeShape,
		},
		{
			Name: "DecodeImage", Doc: "Decodes a BMP, GIF, JPEG, PNG or WebP image, depending on its contents.",
			In: contents, Out: []string{"image: dtype"},
			Attrs: []string{"channels: int = 0", "dtype: {uint8, uint16, float32} = uint8", "expand_animations: bool = true"},
			Shape: decodeShape,
		},
	} {
		kernel.RegisterNew(def, newDecoder)
	}
}

func decodeShape(c *opdef.ShapeContext) error {
	if _, err := opdef.WithRank(c.In[0], 0); err != nil {
		return err
	}
	channels := int64(c.Attrs.Int("channels"))
	switch {
	case channels < 0:
		return status.InvalidArgumentf("channels must be non-negative, got %d", channels)
	case channels == 0:
		channels = tensor.UnknownDim
	}
	if !c.Attrs.Bool("expand_animations") {
		c.Out[0] = tensor.MakePartial(tensor.UnknownDim, tensor.UnknownDim, channels)
	}
	return nil
}

func decodeCropShape(c *opdef.ShapeContext) error {
	if err := decodeShape(c); err != nil {
		return err
	}
	window, err := opdef.WithRank(c.In[1], 1)
	if err != nil {
		return err
	}
	if err := checkDim(window, 0, 4); err != nil {
		return err
	}
	if t := c.Value(1); t != nil {
		v := tensor.Values[int32](t)
		c.Out[0] = tensor.MakePartial(int64(v[2]), int64(v[3]), c.Out[0].Dim(2))
	}
	return nil
}

func decodeGIFShape(c *opdef.ShapeContext) error {
	c.Out[0] = tensor.MakePartial(tensor.UnknownDim, tensor.UnknownDim, tensor.UnknownDim, 3)
	_, err := opdef.WithRank(c.In[0], 0)
	return err
}

// decoder is the kernel of an operation that decodes images. Like TensorFlow's kernels, it accepts
// any format that fits its output, independent of the name of the operation.
type decoder struct {
	op       string
	channels int // channels of the output; 0 for those of the file
	dtype    tensor.DType
	expand   bool // decode all frames of an animation
	jpeg     jpeg.DecodeOptions
}

func newDecoder(c *kernel.Construction) (kernel.Kernel, error) {
	d := &decoder{op: c.Op.Name, channels: c.Attrs.Int("channels"), dtype: c.Outputs[0], expand: true}
	if d.op == "DecodeImage" {
		d.expand = c.Attrs.Bool("expand_animations")
	}
	d.jpeg = jpeg.DecodeOptions{Ratio: 1, Smooth: true, Fast: true}
	if d.op == "DecodeJpeg" || d.op == "DecodeAndCropJpeg" {
		d.jpeg.Ratio, d.jpeg.Smooth = c.Attrs.Int("ratio"), c.Attrs.Bool("fancy_upscaling")
		d.jpeg.Fast = c.Attrs.String("dct_method") != "INTEGER_ACCURATE"
		switch d.jpeg.Ratio {
		case 1, 2, 4, 8:
		default:
			return nil, status.InvalidArgumentf("ratio must be 1, 2, 4, or 8, got %d", d.jpeg.Ratio)
		}
		switch c.Attrs.String("dct_method") {
		case "", "INTEGER_FAST", "INTEGER_ACCURATE":
		default:
			return nil, status.InvalidArgumentf("dct_method must be one of {'', 'INTEGER_FAST', 'INTEGER_ACCURATE'}")
		}
	}
	if d.op == "DecodeGif" {
		d.channels = 3
	}
	switch d.channels {
	case 0, 1, 3, 4:
	default:
		return nil, status.InvalidArgumentf("`channels` must be 0, 1, 3 or 4 but got %d", d.channels)
	}
	return kernel.Func(d.compute), nil
}

// formats lists the file formats and the bytes that their files begin with.
var formats = []struct {
	magic  string
	decode func(d *decoder, ctx *kernel.Context, data string) error
}{
	{"\xff\xd8\xff", (*decoder).decodeJPEG},
	{"\x89PNG\r\n\x1a\n", (*decoder).decodePNG},
	{"GIF8", (*decoder).decodeGIF},
	{"BM", (*decoder).decodeBMP},
}

func (d *decoder) compute(ctx *kernel.Context) error {
	contents := ctx.Input(0)
	if contents.Rank() != 0 {
		return status.InvalidArgumentf("`contents` must be scalar but got shape%v", contents.Shape())
	}
	data := tensor.Value[string](contents)
	switch {
	case data == "":
		return status.InvalidArgumentf("Input is empty.")
	case len(data) > math.MaxInt32:
		return status.InvalidArgumentf("Input contents are too large for int: %d", len(data))
	}
	for _, f := range formats {
		if strings.HasPrefix(data, f.magic) {
			return f.decode(d, ctx, data)
		}
	}
	if isWebP(data) {
		return d.decodeWebP(ctx, data)
	}
	return status.InvalidArgumentf("Unknown image file format. One of JPEG, JPEG XL, PNG, GIF, BMP, WebP required.")
}

// refuse returns an error if the operation does not support a format. better names the operation to
// use instead.
func (d *decoder) refuse(format, better string) error {
	switch d.op {
	case "DecodeBmp":
		return status.InvalidArgumentf("Trying to decode %s format using DecodeBmp op. Use `%s` or `decode_image` instead.", format, better)
	case "DecodeAndCropJpeg":
		if format != "JPEG" {
			return status.InvalidArgumentf("DecodeAndCropJpeg operation can run on JPEG only, but detected %s.", format)
		}
	}
	return nil
}

// output creates the output from 8-bit pixels, converted to the element type of the kernel.
func (d *decoder) output(ctx *kernel.Context, shape tensor.Shape, pix []uint8) error {
	if d.op == "DecodeGif" && len(shape) == 3 {
		shape = append(tensor.Shape{1}, shape...)
	}
	out, err := ctx.Allocate(0, shape)
	if err != nil {
		return err
	}
	switch d.dtype {
	case tensor.Uint8:
		copy(tensor.Values[uint8](out), pix)
	case tensor.Uint16:
		z := tensor.Values[uint16](out)
		for i, v := range pix {
			z[i] = uint16(v) * 256
		}
	case tensor.Float32:
		z := tensor.Values[float32](out)
		for i, v := range pix {
			z[i] = float32(v) * (1.0 / math.MaxUint8)
		}
	}
	return nil
}
