package imageops

import (
	"encoding/binary"
	"image"
	"image/color"
	"image/png"
	"math"
	"strings"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// pngHeader describes the pixels of a PNG file.
type pngHeader struct {
	width, height   uint32
	depth           uint8 // bits per sample
	color           uint8 // flags: 1 palette, 2 color, 4 alpha
	hasTransparency bool  // has a tRNS chunk: transparent colors
	interlaced      bool
}

// parsePNG reads the chunks that precede the pixels.
func parsePNG(data string) (h pngHeader, ok bool) {
	const signature, overhead = 8, 12
	for at := signature; at+overhead <= len(data); {
		size := int(binary.BigEndian.Uint32([]byte(data[at : at+4])))
		if size > len(data)-at-overhead && data[at+4:at+8] != "IDAT" {
			return h, false
		}
		body := data[at+8:]
		switch data[at+4 : at+8] {
		case "IHDR":
			if size != 13 {
				return h, false
			}
			h.width, h.height = binary.BigEndian.Uint32([]byte(body[:4])), binary.BigEndian.Uint32([]byte(body[4:8]))
			h.depth, h.color, h.interlaced = body[8], body[9], body[12] != 0
		case "tRNS":
			h.hasTransparency = true
		case "IDAT":
			return h, h.width > 0 && h.height > 0
		}
		at += overhead + size
	}
	return h, false
}

func (h *pngHeader) channels() int {
	switch h.color {
	case 0:
		return 1
	case 3:
		if h.hasTransparency {
			return 4
		}
		return 3
	case 4:
		return 2
	case 6:
		return 4
	}
	return 3
}

// memory returns the number of bytes that package png takes: an image with the precision of the
// file, another one for the passes of an interlaced image, and two rows.
func (h *pngHeader) memory() int64 {
	per := int64(4)
	switch {
	case h.depth == 16:
		per = 8
	case h.color == 3 || h.color == 0 && !h.hasTransparency:
		per = 1
	}
	images := int64(1)
	if h.interlaced {
		images = 2
	}
	return (images*int64(h.height) + 2) * int64(h.width) * per
}

func (d *decoder) decodePNG(ctx *kernel.Context, data string) error {
	h, ok := parsePNG(data)
	if ok {
		_, err := png.DecodeConfig(strings.NewReader(data))
		ok = err == nil
	}
	if !ok {
		return status.InvalidArgumentf("Invalid PNG. Failed to initialize decoder.")
	}
	width, height := int64(h.width), int64(h.height)
	if width >= 1<<27 || height >= 1<<27 || width*height >= maxPixels {
		return status.InvalidArgumentf("PNG size too large for int: %d by %d", width, height)
	}
	if err := d.refuse("PNG", "decode_png"); err != nil {
		return err
	}
	channels := d.channels
	if channels == 0 {
		channels = h.channels()
	}
	// Deflate expands a byte to at most 1032 bytes, which bounds the number of pixels.
	const expansion = 1032
	if width*height/8 > int64(len(data))*expansion {
		return status.InvalidArgumentf("Invalid PNG data, size %d", len(data))
	}
	membudget.MustTake(h.memory())
	img, err := png.Decode(strings.NewReader(data))
	if err != nil {
		return status.InvalidArgumentf("Invalid PNG data, size %d", len(data))
	}
	shape := tensor.Shape{height, width, int64(channels)}
	if d.op == "DecodeGif" {
		shape = append(tensor.Shape{1}, shape...)
	}
	out, err := ctx.Allocate(0, shape)
	if err != nil {
		return err
	}
	h.fill(out, img, channels)
	return nil
}

// fill sets out to the pixels of an image, with samples converted to the type of out.
func (h *pngHeader) fill(out *tensor.Tensor, img image.Image, channels int) {
	at := 0
	h.samples(img, channels, func(v uint16) {
		switch out.DType() {
		case tensor.Uint8:
			tensor.Values[uint8](out)[at] = uint8(v >> 8)
		case tensor.Uint16:
			tensor.Values[uint16](out)[at] = v
		case tensor.Float32:
			tensor.Values[float32](out)[at] = float32(v) * (1.0 / math.MaxUint16)
		}
		at++
	})
}

// samples calls put with the samples of all pixels in order, as 16 bits. As in libpng, pixels
// without alpha are opaque: their alpha is the largest sample of the file's bit depth.
func (h *pngHeader) samples(img image.Image, channels int, put func(uint16)) {
	opaque := uint16(min(1<<h.depth-1, math.MaxUint8)) * 0x101
	if h.depth == 16 {
		opaque = math.MaxUint16
	}
	hasAlpha := h.color&4 != 0 || h.hasTransparency
	size := img.Bounds().Size()
	for y := range size.Y {
		for x := range size.X {
			c := straight(img, x, y)
			if !hasAlpha {
				c.A = opaque
			}
			if channels < 3 {
				put(h.gray(c))
			} else {
				put(c.R)
				put(c.G)
				put(c.B)
			}
			if channels%2 == 0 {
				put(c.A)
			}
		}
	}
}

// gray returns the luma of a color with the weights of ITU-R BT.601, in the bit depth of the file.
// As in libpng, it is rounded for 16 bits and truncated for fewer.
func (h *pngHeader) gray(c color.NRGBA64) uint16 {
	if c.R == c.G && c.G == c.B {
		return c.R
	}
	weigh := func(r, g, b uint16) uint32 { return 9797*uint32(r) + 19234*uint32(g) + 3737*uint32(b) }
	if h.depth == 16 {
		return uint16((weigh(c.R, c.G, c.B) + 1<<14) >> 15)
	}
	return uint16(weigh(c.R>>8, c.G>>8, c.B>>8)>>15) * 0x101
}

// straight returns a pixel with non-premultiplied alpha.
func straight(img image.Image, x, y int) color.NRGBA64 {
	switch c := img.At(x, y).(type) {
	case color.NRGBA64:
		return c
	case color.NRGBA:
		return color.NRGBA64{R: uint16(c.R) * 0x101, G: uint16(c.G) * 0x101, B: uint16(c.B) * 0x101, A: uint16(c.A) * 0x101}
	case color.RGBA:
		return color.NRGBA64{R: uint16(c.R) * 0x101, G: uint16(c.G) * 0x101, B: uint16(c.B) * 0x101, A: uint16(c.A) * 0x101}
	case color.RGBA64:
		return color.NRGBA64(c)
	default:
		r, g, b, a := c.RGBA()
		return color.NRGBA64{R: uint16(r), G: uint16(g), B: uint16(b), A: uint16(a)}
	}
}
