package imageops

import (
	"math"
	"strconv"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// webpFrame is a frame of an animation: a picture at x, y of the canvas.
type webpFrame struct {
	webpPicture
	x, y int
	// blend the frame with the canvas; clear its area after it was shown
	blend, vanish bool
}

// readFrame reads the body of an ANMF chunk: x/2, y/2, width-1, height-1 and duration with 3 bytes
// each, a byte of flags, and the chunks of the picture.
func readFrame(body string) (f webpFrame, ok bool) {
	const head, vanish, replace = 16, 1, 2
	if len(body) < head {
		return f, false
	}
	if f.webpPicture, ok = readPicture(body[head:], true); !ok {
		return f, false
	}
	f.x, f.y = 2*uint24(body), 2*uint24(body[3:])
	f.blend, f.vanish = body[head-1]&replace == 0, body[head-1]&vanish != 0
	return f, f.width == 1+uint24(body[6:]) && f.height == 1+uint24(body[9:])
}

// frames returns the frames of an animation. It reports false if a frame is truncated or exceeds
// the canvas.
func (f *webpFile) frames() (all []webpFrame, ok bool) {
	for rest := f.rest; rest != ""; {
		var c chunk
		if c, rest, ok = nextChunk(rest); !ok || !c.whole {
			return nil, false
		}
		if c.id != "ANMF" {
			continue
		}
		frame, ok := readFrame(c.body)
		if !ok || frame.x+frame.width > f.width || frame.y+frame.height > f.height {
			return nil, false
		}
		all = membudget.Append(all, frame)
	}
	return all, len(all) > 0
}

func (d *decoder) decodeWebPAnimation(ctx *kernel.Context, f *webpFile) error {
	invalid := func(why string) error { return status.InvalidArgumentf("Failed to decode WebP Animation: %s", why) }
	frames, ok := f.frames()
	if !ok {
		return invalid("failed to decode WebP Animation")
	}
	shape := tensor.Shape{int64(f.height), int64(f.width), int64(f.channels())}
	if d.expand {
		shape = append(tensor.Shape{int64(len(frames))}, shape...)
	} else {
		frames = frames[:1]
	}
	size := f.height * f.width * f.channels()
	if size >= maxPixels || size*len(frames) >= maxPixels {
		return invalid("failed to allocate output for WebP Animation")
	}
	pix := membudget.Make[uint8](size * len(frames))
	show := animation{width: f.width, height: f.height, last: membudget.Make[uint8](size)}
	for k := range frames {
		if !show.next(pix[k*size:(k+1)*size], &frames[k]) {
			return invalid("failed to decode frame: " + strconv.Itoa(k))
		}
	}
	return d.output(ctx, shape, pix)
}

// animation renders the frames of an animation onto a canvas.
type animation struct {
	width, height int
	last          []uint8    // canvas after the last frame, with its area cleared if it vanishes
	before        *webpFrame // previous frame; nil at first
	fresh         bool       // whether the previous frame did not depend on earlier ones
}

// whole reports whether a frame covers the whole canvas.
func (a *animation) whole(f *webpFrame) bool { return f.width == a.width && f.height == a.height }

// next sets pix to the canvas with the next frame drawn.
func (a *animation) next(pix []uint8, f *webpFrame) bool {
	fresh := a.before == nil || (!f.alpha || !f.blend) && a.whole(f) || a.before.vanish && (a.whole(a.before) || a.fresh)
	if !fresh {
		copy(pix, a.last)
	}
	to := picture{width: a.width, height: a.height, channels: 4, pix: pix}
	if !f.draw(&to, f.x, f.y) {
		return false
	}
	if f.blend && !fresh {
		a.blend(&to, f)
	}
	copy(a.last, pix)
	if f.vanish {
		to.pix = a.last
		for y := range f.height {
			clear(to.row(f.x, f.y+y)[:4*f.width])
		}
	}
	a.before, a.fresh = f, fresh
	return true
}

// blend draws the frame over the previous canvas, except where the previous frame vanished.
func (a *animation) blend(to *picture, f *webpFrame) {
	under := *to
	under.pix = a.last
	for y := f.y; y < f.y+f.height; y++ {
		top, below := to.row(f.x, y), under.row(f.x, y)
		for x := range f.width {
			if !a.before.vanish || !a.before.covers(f.x+x, y) {
				blendPixel(top[4*x:][:4], below[4*x:][:4])
			}
		}
	}
}

func (f *webpFrame) covers(x, y int) bool {
	return x >= f.x && x < f.x+f.width && y >= f.y && y < f.y+f.height
}

// blendPixel blends a pixel over another one, with the rounding of libwebp.
func blendPixel(top, below []uint8) {
	alpha := uint32(top[3])
	switch alpha {
	case math.MaxUint8:
		return
	case 0:
		copy(top, below)
		return
	}
	rest := uint32(below[3]) * (256 - alpha) >> 8
	all := alpha + rest
	scale := uint32(1<<24) / all
	for c := range 3 {
		top[c] = uint8((uint32(top[c])*alpha + uint32(below[c])*rest) * scale >> 24)
	}
	top[3] = uint8(all)
}
