package imageops

import (
	"image"
	"image/gif"
	"strings"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// gifSize is the size of a GIF file in pixels.
type gifSize struct{ frames, all, largest int }

// gifMemory is about the memory of a frame apart from its pixels, in bytes: a palette of its own.
const gifMemory = 5500

// gifPixels returns the number of frames of a GIF file, and the pixels of all of them and of the
// largest one, from the headers of its blocks. It finds every frame that package gif finds, so it
// reads extensions as that package does: a text or an application begins with a block of a size
// that the file does not choose, or that may be 0.
func gifPixels(data string) (size gifSize) {
	const header = 13
	table := func(flags byte) int {
		if flags&0x80 == 0 {
			return 0
		}
		return 3 << (flags&7 + 1)
	}
	if len(data) < header {
		return size
	}
	at := header + table(data[10])
	skip := func() {
		for at < len(data) && data[at] != 0 {
			at += 1 + int(data[at])
		}
		at++
	}
	for at+1 < len(data) {
		switch data[at] {
		case 0x21: // extension
			at += 2
			switch label := data[at-1]; {
			case label == 0x01: // text
				at += 13
			case label == 0xff && at < len(data): // application
				at += 1 + int(data[at])
			}
		case 0x2c: // image
			if at+10 > len(data) {
				return size
			}
			n := (int(data[at+5]) | int(data[at+6])<<8) * (int(data[at+7]) | int(data[at+8])<<8)
			size = gifSize{size.frames + 1, size.all + n, max(size.largest, n)}
			at += 10 + table(data[at+9]) + 1
		default:
			return size
		}
		skip()
	}
	return size
}

func (d *decoder) decodeGIF(ctx *kernel.Context, data string) error {
	if d.channels != 0 && d.channels != 3 {
		return status.InvalidArgumentf("channels must be 0 or 3 for GIF, got %d", d.channels)
	}
	if err := d.refuse("GIF", "decode_gif"); err != nil {
		return err
	}
	if d.op == "DecodeWebP" {
		return status.InvalidArgumentf("Bad op type %s", d.op)
	}
	invalid := func(why string) error {
		return status.InvalidArgumentf("Invalid GIF data (size %d), %s", len(data), why)
	}
	// LZW expands one code of 12 bits to at most 4096 pixels.
	const expansion = 4096
	size := gifPixels(data)
	if size.all*3 >= maxPixels || size.largest > len(data)*expansion {
		return invalid("failed to slurp gif file: Image is defective, decoding aborted")
	}
	membudget.MustTake(int64(size.all + gifMemory*size.frames))
	g, err := gif.DecodeAll(strings.NewReader(data))
	if err != nil {
		return invalid("failed to slurp gif file: " + strings.TrimPrefix(err.Error(), "gif: "))
	}
	if len(g.Image) == 0 {
		return invalid("gif file does not contain any image")
	}
	if n := len(g.Image); n > 1 && (d.op == "DecodePng" || d.op == "DecodeJpeg") {
		return status.InvalidArgumentf(
			"Got %d frames, but animated gifs can only be decoded by tf.io.decode_gif or tf.io.decode_image", n)
	}
	return d.outputFrames(ctx, g.Image)
}

func (d *decoder) outputFrames(ctx *kernel.Context, frames []*image.Paletted) error {
	height, width := 0, 0
	for _, f := range frames {
		height, width = max(height, f.Rect.Dy()), max(width, f.Rect.Dx())
	}
	if !d.expand {
		frames = frames[:1]
	}
	shape := tensor.Shape{int64(height), int64(width), 3}
	if d.expand && d.op != "DecodePng" && d.op != "DecodeJpeg" {
		shape = append(tensor.Shape{int64(len(frames))}, shape...)
	}
	size := height * width * 3
	if len(frames)*size >= maxPixels {
		return status.InvalidArgumentf("GIF size too large: %d frames of %d by %d", len(frames), width, height)
	}
	pix := membudget.Make[uint8](len(frames) * size)
	for k, f := range frames {
		frame := pix[k*size : (k+1)*size]
		if k > 0 {
			copy(frame, pix[(k-1)*size:])
		}
		drawFrame(frame, f, height, width)
	}
	return d.output(ctx, shape, pix)
}

// drawFrame draws a frame over the preceding ones. Transparent pixels leave them visible, or black.
func drawFrame(pix []uint8, f *image.Paletted, height, width int) {
	r := f.Rect.Intersect(image.Rect(0, 0, width, height))
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			red, green, blue, alpha := f.Palette[f.ColorIndexAt(x, y)].RGBA()
			if alpha == 0 {
				continue
			}
			to := pix[(y*width+x)*3:]
			to[0], to[1], to[2] = uint8(red>>8), uint8(green>>8), uint8(blue>>8)
		}
	}
}
