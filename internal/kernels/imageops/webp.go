package imageops

import (
	"encoding/binary"
	"strings"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterNew(opdef.Def{
		Name: "DecodeWebP", Doc: "Decodes the frames of a WebP image. An animation requires channels to be 4, or 0 for the channels of the file.",
		In: []string{"contents: string"}, Out: []string{"image: dtype"}, Attrs: []string{"channels: int = 0", "dtype: {uint8} = uint8"},
		Shape: func(c *opdef.ShapeContext) error {
			err := decodeShape(c)
			channels := int64(c.Attrs.Int("channels"))
			if channels == 0 {
				channels = tensor.UnknownDim
			}
			c.Out[0] = tensor.MakePartial(tensor.UnknownDim, tensor.UnknownDim, tensor.UnknownDim, channels)
			return err
		},
	}, newDecoder)
}

const (
	riffMagic, webpMagic = "RIFF", "WEBP"
	riffHead             = 12 // "RIFF", remaining size, "WEBP"
	chunkHead            = 8  // four characters, size of the body
)

func isWebP(data string) bool {
	return len(data) > riffHead && strings.HasPrefix(data, riffMagic) && data[8:riffHead] == webpMagic
}

// chunk is a part of a RIFF file.
type chunk struct {
	id, body string
	whole    bool // the file contains the whole body
}

// nextChunk splits the first chunk off data.
func nextChunk(data string) (c chunk, rest string, ok bool) {
	if len(data) < chunkHead {
		return c, "", false
	}
	c.id = data[:4]
	size := int(binary.LittleEndian.Uint32([]byte(data[4:chunkHead])))
	rest = data[chunkHead:]
	c.whole = size <= len(rest)
	c.body = rest[:min(size, len(rest))]
	return c, rest[min(size+size%2, len(rest)):], true // bodies of odd size are padded by a byte
}

func (c chunk) String() string {
	head := binary.LittleEndian.AppendUint32([]byte(c.id), uint32(len(c.body)))
	return string(head) + c.body + "\x00"[:len(c.body)%2]
}

// webpFile describes the header of a WebP file.
type webpFile struct {
	width, height   int
	alpha, animated bool
	whole           bool        // the file is not truncated
	picture         webpPicture // the picture, unless animated
	rest            string      // chunks of an animation
}

// channels returns the number of channels of the decoded image.
func (f *webpFile) channels() int {
	if f.alpha || f.animated {
		return 4
	}
	return 3
}

const (
	webpAnimated = 1 << 1 // flag of VP8X
	webpAlpha    = 1 << 4
)

// uint24 decodes a little-endian integer of 3 bytes.
func uint24(s string) int { return int(s[0]) | int(s[1])<<8 | int(s[2])<<16 }

func readWebP(data string) (f webpFile, ok bool) {
	size := int(binary.LittleEndian.Uint32([]byte(data[4:8])))
	if size < len(webpMagic)+chunkHead {
		return f, false
	}
	f.whole = chunkHead+size <= len(data)
	f.rest = data[riffHead:min(chunkHead+size, len(data))]
	first, rest, ok := nextChunk(f.rest)
	if ok && first.id == "VP8X" {
		if len(first.body) != 10 {
			return f, false
		}
		f.alpha, f.animated = first.body[0]&webpAlpha != 0, first.body[0]&webpAnimated != 0
		f.width, f.height = 1+uint24(first.body[4:]), 1+uint24(first.body[7:])
		if f.rest = rest; f.animated {
			return f, true
		}
	}
	f.picture, ok = readPicture(f.rest, f.width > 0)
	if !ok && f.width > 0 && !f.picture.image.whole { // a truncated picture
		return f, true
	}
	if !ok || f.width > 0 && (f.width != f.picture.width || f.height != f.picture.height) {
		return f, false
	}
	f.width, f.height = f.picture.width, f.picture.height
	f.alpha = f.picture.alpha || f.alpha && f.picture.image.id == "VP8 "
	return f, true
}

func (d *decoder) decodeWebP(ctx *kernel.Context, data string) error {
	switch {
	case d.channels == 1:
		return status.InvalidArgumentf("WebP only supports 3 or 4 channels")
	case d.dtype != tensor.Uint8:
		return status.InvalidArgumentf("WebP only supports uint8 for dtype")
	}
	f, ok := readWebP(data)
	switch {
	case !ok:
		return status.InvalidArgumentf("Failed to decode WebP header.")
	case d.channels != 0 && d.channels != f.channels():
		return status.InvalidArgumentf("Number of channels requested does not match input")
	case f.animated:
		return d.decodeWebPAnimation(ctx, &f)
	case !f.whole || !f.picture.image.whole || f.width*f.height*f.channels() >= maxPixels:
		return status.InvalidArgumentf("Failed to decode WebP image.")
	}
	out := picture{width: f.width, height: f.height, channels: f.channels()}
	out.pix = membudget.Make[uint8](f.width * f.height * out.channels)
	if !f.picture.draw(&out, 0, 0) {
		return status.InvalidArgumentf("Failed to decode WebP image.")
	}
	shape := tensor.Shape{int64(f.height), int64(f.width), int64(out.channels)}
	if d.expand {
		shape = append(tensor.Shape{1}, shape...)
	}
	return d.output(ctx, shape, out.pix)
}
