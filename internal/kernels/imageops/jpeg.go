package imageops

import (
	"context"
	"strings"

	"github.com/weft-ml/weft/internal/format/jpeg"
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
	p, ok := readJPEG(ctx.Context(), data, d.channels, d.jpeg, window)
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

// readJPEG decodes the window [y, x, height, width] of an image, or the whole image, to 1 or 3
// channels, or to its own number of channels if channels is 0. It reports false if it cannot, or if
// the image does not contain the window.
func readJPEG(ctx context.Context, data string, channels int, options jpeg.DecodeOptions, window []int32) (*picture, bool) {
	h, ok := jpegHeader(data)
	if !ok || h.height*h.width*h.channels/(options.Ratio*options.Ratio) >= maxPixels || h.height*h.width >= maxPixels {
		return nil, false
	}
	if options.Channels = channels; channels == 0 {
		options.Channels = min(h.channels, 3)
	}
	y, rows := 0, (h.height+options.Ratio-1)/options.Ratio
	if window != nil {
		if window[0] < 0 || window[1] < 0 || window[2] <= 0 || window[3] <= 0 || int(window[0])+int(window[2]) > rows {
			return nil, false
		}
		y, rows = int(window[0]), int(window[2])
		options.Left, options.Width = int(window[1]), int(window[3])
	}
	p, err := jpeg.Decode(ctx, data, options)
	if err != nil {
		return nil, false
	}
	row := p.Width * p.Channels
	return &picture{height: rows, width: p.Width, channels: p.Channels, pix: p.Pix[y*row : (y+rows)*row]}, true
}
