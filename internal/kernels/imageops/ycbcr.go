package imageops

import (
	"image"

	"github.com/weft-ml/weft/internal/sys/membudget"
)

// plane holds the samples of one color component, subsampled by the given factors.
type plane struct {
	pix                   []uint8
	stride, width, height int
	across, down          int
}

// factors holds the number of pixels, across and down, that share a chroma sample.
var factors = map[image.YCbCrSubsampleRatio][2]int{
	image.YCbCrSubsampleRatio444: {1, 1}, image.YCbCrSubsampleRatio422: {2, 1}, image.YCbCrSubsampleRatio420: {2, 2},
	image.YCbCrSubsampleRatio440: {1, 2}, image.YCbCrSubsampleRatio411: {4, 1}, image.YCbCrSubsampleRatio410: {4, 2},
}

func (p *plane) row(y int) []uint8 {
	return p.pix[min(max(y, 0), p.height-1)*p.stride:][:p.width]
}

// expand sets out to the samples for row y of the pixels. If fancy is set, it interpolates between
// the two nearest samples with weights of 3/4 and 1/4, with the rounding of libjpeg.
func (p *plane) expand(out []uint8, y int, fancy bool) {
	near := p.row(y / p.down)
	if !fancy || p.across > 2 || p.across == 2 && p.width <= 2 {
		for x := range out {
			out[x] = near[x/p.across]
		}
		return
	}
	far := p.row(y/p.down - 1 + 2*(y%p.down))
	sum := func(x int) int { return 3*int(near[x]) + int(far[x]) }
	switch {
	case p.across == 1 && p.down == 1:
		copy(out, near)
	case p.across == 1:
		for x := range out {
			out[x] = uint8((sum(x) + 1 + y%2) >> 2)
		}
	case p.down == 1:
		for x := range out {
			at := x / 2
			other := at - 1 + 2*(x%2)
			if other < 0 || other >= p.width {
				out[x] = near[at]
				continue
			}
			out[x] = uint8((3*int(near[at]) + int(near[other]) + 1 + x%2) >> 2)
		}
	default:
		for x := range out {
			at := x / 2
			other := min(max(at-1+2*(x%2), 0), p.width-1)
			out[x] = uint8((3*sum(at) + sum(other) + 8 - x%2) >> 4)
		}
	}
}

// ycbcrPixels appends the pixels of an image. For one channel, it appends the luma only.
func ycbcrPixels(out []uint8, img *image.YCbCr, channels int, fancy bool) []uint8 {
	size, f := img.Rect.Size(), factors[img.SubsampleRatio]
	if f == [2]int{} {
		return nil
	}
	blue := plane{
		pix: img.Cb, stride: img.CStride, across: f[0], down: f[1],
		width: (size.X + f[0] - 1) / f[0], height: (size.Y + f[1] - 1) / f[1],
	}
	red := blue
	red.pix = img.Cr
	cb, cr := membudget.Make[uint8](size.X), membudget.Make[uint8](size.X)
	for y := range size.Y {
		row := img.Y[y*img.YStride:][:size.X]
		if channels == 1 {
			out = append(out, row...)
			continue
		}
		blue.expand(cb, y, fancy)
		red.expand(cr, y, fancy)
		for x, v := range row {
			r, g, b := rgb(int(v), int(cb[x])-128, int(cr[x])-128)
			out = append(out, r, g, b)
		}
	}
	return out
}

// rgb converts with the 16-bit fractions of libjpeg (ITU-R BT.601, full range).
func rgb(y, cb, cr int) (r, g, b uint8) {
	const half = 1 << 15
	clamp := func(v int) uint8 { return uint8(min(max(v, 0), 255)) }
	return clamp(y + (91881*cr+half)>>16), clamp(y + (-22554*cb-46802*cr+half)>>16), clamp(y + (116130*cb+half)>>16)
}
