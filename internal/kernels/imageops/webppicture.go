package imageops

import (
	"encoding/binary"
	"image"
	"math"
	"strings"

	"golang.org/x/image/webp"

	"github.com/weft-ml/weft/internal/sys/membudget"
)

// webpPicture is a single picture of a WebP file: a VP8 chunk (lossy), with an ALPH chunk if it has
// alpha, or a VP8L chunk.
type webpPicture struct {
	width, height int
	alpha         bool // the picture has an alpha channel
	alph, image   chunk
}

// readPicture finds the picture among chunks. Unless others are permitted, the first chunk must be
// the image.
func readPicture(chunks string, others bool) (p webpPicture, ok bool) {
	for {
		var c chunk
		if c, chunks, ok = nextChunk(chunks); !ok {
			return p, false
		}
		switch b := c.body; {
		case c.id == "ALPH" && others:
			p.alph, p.alpha = c, true
		case c.id == "VP8 ":
			p.image = c
			const key, start = 1, "\x9d\x01\x2a" // the bit is 0 in key frames
			if len(b) < 10 || b[0]&key != 0 || b[3:6] != start {
				return p, false
			}
			p.width, p.height = (int(b[6])|int(b[7])<<8)&0x3fff, (int(b[8])|int(b[9])<<8)&0x3fff
			return p, p.width > 0 && p.height > 0
		case c.id == "VP8L":
			p.image = c
			if len(b) < 5 || b[0] != 0x2f {
				return p, false
			}
			bits := binary.LittleEndian.Uint32([]byte(b[1:5]))
			p.width, p.height, p.alpha = 1+int(bits&0x3fff), 1+int(bits>>14&0x3fff), bits>>28&1 != 0
			const version = 29
			return p, bits>>version == 0
		case !others:
			return p, false
		}
	}
}

// file returns a WebP file with only this picture.
func (p *webpPicture) file() string {
	body := webpMagic + p.image.String()
	if p.image.id == "VP8 " && p.alpha {
		size := binary.LittleEndian.AppendUint32([]byte{webpAlpha, 0, 0, 0}, uint32(p.width-1))[:7]
		size = binary.LittleEndian.AppendUint32(size, uint32(p.height-1))[:10]
		body = webpMagic + chunk{id: "VP8X", body: string(size)}.String() + p.alph.String() + p.image.String()
	}
	return chunk{id: riffMagic, body: body}.String()
}

// memory returns the number of bytes that the decoding of the picture takes at most: copies of the
// file and of its parts, and pixels, for which a few bytes of a file are enough.
func (p *webpPicture) memory() int64 {
	const copies, macroblock = 5, 16
	per := int64(8) // VP8L: pixels and a copy without a palette
	switch {
	case p.image.id == "VP8 " && p.alpha:
		per = 12 // also the alpha channel, which is coded like VP8L
	case p.image.id == "VP8 ":
		per = 2
	}
	return copies*int64(len(p.image.body)+len(p.alph.body)) + per*int64(p.width+macroblock)*int64(p.height+macroblock)
}

// draw draws the picture at x, y of the canvas, which must contain it.
func (p *webpPicture) draw(to *picture, x, y int) bool {
	if !p.image.whole || p.alpha && p.alph.id != "" && !p.alph.whole {
		return false
	}
	membudget.MustTake(p.memory())
	img, err := webp.Decode(strings.NewReader(p.file()))
	if err != nil || img.Bounds().Dx() != p.width || img.Bounds().Dy() != p.height {
		return false
	}
	switch img := img.(type) {
	case *image.NRGBA:
		for i := range p.height {
			row, from := to.row(x, y+i), img.Pix[i*img.Stride:]
			for j := range p.width {
				copy(row[j*to.channels:][:to.channels], from[4*j:])
			}
		}
	case *image.YCbCr:
		drawWebP(to, x, y, img, nil, 0)
	case *image.NYCbCrA:
		drawWebP(to, x, y, &img.YCbCr, img.A, img.AStride)
	default:
		return false
	}
	return true
}

// drawWebP converts a lossy picture. alpha holds its alpha values, or is nil if it is opaque.
func drawWebP(to *picture, x, y int, img *image.YCbCr, alpha []uint8, stride int) {
	size := img.Rect.Size()
	blue := chroma{pix: img.Cb, stride: img.CStride, width: (size.X + 1) / 2, height: (size.Y + 1) / 2}
	red := blue
	red.pix = img.Cr
	cb, cr := membudget.Make[uint8](size.X), membudget.Make[uint8](size.X)
	for i := range size.Y {
		blue.expand(cb, i)
		red.expand(cr, i)
		row := to.row(x, y+i)
		for j, v := range img.Y[i*img.YStride:][:size.X] {
			pixel := row[j*to.channels:][:to.channels]
			pixel[0], pixel[1], pixel[2] = videoRGB(int(v), int(cb[j]), int(cr[j]))
			switch {
			case to.channels < 4:
			case alpha == nil:
				pixel[3] = math.MaxUint8
			default:
				pixel[3] = alpha[i*stride+j]
			}
		}
	}
}

// chroma holds samples for squares of two by two pixels.
type chroma struct {
	pix                   []uint8
	stride, width, height int
}

func (c *chroma) row(y int) []uint8 {
	return c.pix[min(max(y, 0), c.height-1)*c.stride:][:c.width]
}

// expand sets out to the samples for row y of the pixels. It weights the four nearest samples
// by 9, 3, 3 and 1 sixteenths, with the rounding of libwebp.
func (c *chroma) expand(out []uint8, y int) {
	near, far := c.row(y/2), c.row(y/2-1+2*(y%2))
	for x := range out {
		at := x / 2
		n, v := int(near[at]), int(far[at])
		side := at - 1 + 2*(x%2)
		if side < 0 || side >= len(near) {
			out[x] = uint8((3*n + v + 2) >> 2)
			continue
		}
		h, d := int(near[side]), int(far[side])
		out[x] = uint8(((n+3*h+3*v+d+8)>>3 + n) >> 1)
	}
}

// videoRGB converts with the fractions of libwebp (ITU-R BT.601, limited range: luma from 16 to
// 235).
func videoRGB(y, cb, cr int) (r, g, b uint8) {
	part := func(v, by int) int { return v * by >> 8 }
	clamp := func(v int) uint8 { return uint8(min(max(v>>6, 0), math.MaxUint8)) }
	light := part(y, 19077)
	return clamp(light + part(cr, 26149) - 14234), clamp(light - part(cb, 6419) - part(cr, 13320) + 8708), clamp(light + part(cb, 33050) - 17685)
}
