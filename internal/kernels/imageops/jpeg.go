package imageops

import (
	"image"
	"image/jpeg"
	"strings"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterFunc(opdef.Def{
		Name: "ExtractJpegShape", Doc: "Extracts the shape [height, width, channels] of a JPEG-encoded image from its header.",
		In: []string{"contents: string"}, Out: []string{"image_shape: output_type"},
		Attrs: []string{"output_type: {int32, int64} = int32"},
		Shape: func(c *opdef.ShapeContext) error {
			c.Out[0] = tensor.MakePartial(3)
			_, err := opdef.WithRank(c.In[0], 0)
			return err
		},
	}, extractJPEGShape)
}

// jpegOptions describes how a JPEG image is decoded: reduced by ratio, and with interpolated chroma
// samples if fancy is set.
type jpegOptions struct {
	ratio int
	fancy bool
}

// maxPixels bounds the number of decoded elements. It is checked before memory is allocated.
const maxPixels = 1 << 29

// header holds the start of frame of a JPEG file.
type header struct{ height, width, channels int }

// jpegHeader finds the start of frame. It follows segments that consist of a marker, a length and a
// body.
func jpegHeader(data string) (header, bool) {
	for at := 2; at+4 <= len(data); {
		marker := data[at+1]
		switch {
		case data[at] != 0xff:
			return header{}, false
		case marker == 0xff: // padding
			at++
			continue
		case marker == 0x01 || marker >= 0xd0 && marker <= 0xd7: // markers without length
			at += 2
			continue
		}
		size := int(data[at+2])<<8 | int(data[at+3])
		if marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc {
			if size < 8 || at+10 > len(data) {
				return header{}, false
			}
			h := header{
				height: int(data[at+5])<<8 | int(data[at+6]), width: int(data[at+7])<<8 | int(data[at+8]), channels: int(data[at+9]),
			}
			return h, h.height > 0 && h.width > 0 && h.channels > 0
		}
		if size < 2 {
			return header{}, false
		}
		at += 2 + size
	}
	return header{}, false
}

func extractJPEGShape(ctx *kernel.Context) error {
	in := ctx.Input(0)
	if in.Rank() != 0 {
		return status.InvalidArgumentf("contents must be scalar, got shape %v", in.Shape())
	}
	data := tensor.Value[string](in)
	h, ok := jpegHeader(data)
	if !ok || !strings.HasPrefix(data, "\xff\xd8") {
		return status.InvalidArgumentf("Invalid JPEG data, size %d", len(data))
	}
	if ctx.OutputType(0) == tensor.Int64 {
		ctx.SetOutput(0, tensor.Vector(int64(h.height), int64(h.width), int64(h.channels)))
	} else {
		ctx.SetOutput(0, tensor.Vector(int32(h.height), int32(h.width), int32(h.channels)))
	}
	return nil
}

func (d *decoder) decodeJPEG(ctx *kernel.Context, data string) error {
	if d.channels == 4 {
		return status.InvalidArgumentf("JPEG does not support 4 channels")
	}
	if d.op == "DecodeBmp" {
		return d.refuse("JPEG", "decode_jpeg")
	}
	window, err := cropWindow(ctx)
	if err != nil {
		return err
	}
	p, ok := readJPEG(data, d.channels, d.jpeg)
	if ok && window != nil {
		p, ok = p.crop(window)
	}
	if !ok {
		return status.InvalidArgumentf("jpeg::Uncompress failed. Invalid JPEG data or crop window.")
	}
	return d.output(ctx, tensor.Shape{int64(p.height), int64(p.width), int64(p.channels)}, p.pix)
}

// cropWindow returns the values y, x, height and width of input 1, or nil if there is no such
// input.
func cropWindow(ctx *kernel.Context) ([]int32, error) {
	if ctx.NumInputs() < 2 {
		return nil, nil
	}
	in := ctx.Input(1)
	switch {
	case in.Rank() != 1:
		return nil, status.InvalidArgumentf("crop_window must be 1-D, got shape %v", in.Shape())
	case in.Dim(0) != 4:
		return nil, status.InvalidArgumentf("crop_size must have four elements %v", in.Shape())
	}
	return tensor.Values[int32](in), nil
}

// picture holds rows of 8-bit pixels.
type picture struct {
	height, width, channels int
	pix                     []uint8
}

// row returns the pixels of row y from x on.
func (p *picture) row(x, y int) []uint8 {
	return p.pix[(y*p.width+x)*p.channels : (y+1)*p.width*p.channels]
}

// readJPEG decodes an image to 1 or 3 channels, or to its own number of channels if channels is 0.
func readJPEG(data string, channels int, options jpegOptions) (*picture, bool) {
	h, ok := jpegHeader(data)
	if !ok || h.height*h.width*h.channels/(options.ratio*options.ratio) >= maxPixels || h.height*h.width >= maxPixels {
		return nil, false
	}
	img, err := jpeg.Decode(strings.NewReader(data))
	if err != nil {
		return nil, false
	}
	if channels == 0 {
		channels = min(h.channels, 3)
	}
	p := &picture{height: h.height, width: h.width, channels: channels}
	if p.pix = jpegPixels(img, channels, options.fancy); p.pix == nil {
		return nil, false
	}
	return p.shrink(options.ratio), true
}

func jpegPixels(img image.Image, channels int, fancy bool) []uint8 {
	size := img.Bounds().Size()
	out := membudget.MakeCap[uint8](size.X * size.Y * channels)
	switch img := img.(type) {
	case *image.Gray:
		for y := range size.Y {
			for _, v := range img.Pix[y*img.Stride:][:size.X] {
				for range channels {
					out = append(out, v)
				}
			}
		}
	case *image.YCbCr:
		return ycbcrPixels(out, img, channels, fancy)
	case *image.RGBA:
		if channels == 1 {
			return nil
		}
		for y := range size.Y {
			row := img.Pix[y*img.Stride:]
			for x := range size.X {
				out = append(out, row[4*x:4*x+3]...)
			}
		}
	case *image.CMYK:
		if channels == 1 {
			return nil
		}
		for y := range size.Y {
			row := img.Pix[y*img.Stride:]
			for x := range size.X {
				for _, ink := range row[4*x : 4*x+3] {
					out = append(out, uint8((255-int(row[4*x+3]))*(255-int(ink))/255))
				}
			}
		}
	default:
		return nil
	}
	return out
}

// shrink returns the picture with each square of ratio by ratio pixels replaced by its mean.
func (p *picture) shrink(ratio int) *picture {
	if ratio == 1 {
		return p
	}
	out := &picture{height: (p.height + ratio - 1) / ratio, width: (p.width + ratio - 1) / ratio, channels: p.channels}
	for y := range out.height {
		for x := range out.width {
			for c := range p.channels {
				sum, n := 0, 0
				for i := y * ratio; i < min((y+1)*ratio, p.height); i++ {
					for j := x * ratio; j < min((x+1)*ratio, p.width); j++ {
						sum, n = sum+int(p.pix[(i*p.width+j)*p.channels+c]), n+1
					}
				}
				out.pix = append(out.pix, uint8((sum+n/2)/n))
			}
		}
	}
	return out
}

// crop returns the window [y, x, height, width] of the picture. It reports false if the picture
// does not contain the window.
func (p *picture) crop(window []int32) (*picture, bool) {
	y, x, height, width := int(window[0]), int(window[1]), int(window[2]), int(window[3])
	if y < 0 || x < 0 || height <= 0 || width <= 0 || y+height > p.height || x+width > p.width {
		return nil, false
	}
	out := &picture{height: height, width: width, channels: p.channels}
	for i := range height {
		out.pix = append(out.pix, p.row(x, y+i)[:width*p.channels]...)
	}
	return out, true
}
