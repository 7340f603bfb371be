package jpeg

import "github.com/weft-ml/weft/internal/sys/membudget"

// colors is what the components of a file mean.
type colors int

const (
	gray colors = iota
	luma        // and the differences of blue and red from it
	rgb
	cmyk
	ycck // luma, the differences, and black, of the inverse of inks
)

func (r *reader) colors() colors {
	switch len(r.planes) {
	case 1:
		return gray
	case 4:
		if r.adobe == 2 {
			return ycck
		}
		return cmyk
	}
	ids := [3]byte{r.planes[0].id, r.planes[1].id, r.planes[2].id}
	switch {
	case r.jfif:
	case r.adobe >= 0:
		if r.adobe == 0 {
			return rgb
		}
	case ids == [3]byte{'R', 'G', 'B'}:
		return rgb
	}
	return luma
}

// resampled reads the rows of a component at the resolution of the picture.
type resampled struct {
	*plane
	across, down  int // pixels that share a sample
	left          int // of the samples, the first that is read
	width, height int // in samples
	smooth        bool
	line          []uint8
}

// picture returns the pixels.
func (r *reader) picture() (*Picture, error) {
	least := 8 / r.o.Ratio
	p := &Picture{Height: ceil(r.height, r.o.Ratio), Width: ceil(r.width, r.o.Ratio), Channels: r.o.Channels}
	left, whole := 0, p.Width
	if r.o.Width > 0 {
		if r.o.Left < 0 || r.o.Left+r.o.Width > p.Width {
			return nil, errInvalid
		}
		unit := least * r.across // units are decoded whole
		if len(r.planes) == 1 {
			unit = least
		}
		left, p.Width = r.o.Left-r.o.Left%unit, r.o.Width
		whole = r.o.Left + r.o.Width - left
	}
	all := make([]*resampled, 0, 4)
	narrow := false // libjpeg-turbo looks again at which components can be interpolated
	for _, c := range r.planes {
		if !c.needed {
			continue
		}
		if r.across*least%(c.across*c.size) != 0 || r.down*least%(c.down*c.size) != 0 {
			return nil, errUnsupported // as in libjpeg
		}
		s := &resampled{
			plane: c, across: r.across * least / (c.across * c.size), down: r.down * least / (c.down * c.size),
			height: ceil(r.height*c.down*c.size, 8*r.down), line: membudget.Make[uint8](whole),
		}
		s.left, s.width = left/s.across, ceil(whole, s.across)
		narrow = narrow || s.width < 2 && s.fullWidth(r) >= 2
		all = append(all, s)
	}
	for _, s := range all {
		width := s.width
		if !narrow {
			width = s.fullWidth(r)
		}
		s.smooth = r.o.Smooth && least > 1 && s.across <= 2 && s.down <= 2 && (s.across == 1 || width > 2)
	}
	kind := r.colors()
	if p.Channels == 1 && (kind == cmyk || kind == ycck) {
		return nil, errUnsupported
	}
	p.Pix = membudget.MakeCap[uint8](p.Height * p.Width * p.Channels)
	for y := range p.Height {
		for _, s := range all {
			s.expand(y)
		}
		p.Pix = r.row(p.Pix, all, kind, whole-p.Width)
	}
	return p, nil
}

// fullWidth returns the samples of a row of the whole picture.
func (s *resampled) fullWidth(r *reader) int { return ceil(r.width*s.plane.across*s.size, 8*r.across) }

// row appends a row of pixels, from column x on.
func (r *reader) row(out []uint8, all []*resampled, kind colors, x int) []uint8 {
	first := all[0].line[x:]
	switch {
	case r.o.Channels == 1 && kind != rgb:
		return append(out, first...)
	case kind == gray:
		for _, v := range first {
			out = append(out, v, v, v)
		}
		return out
	}
	second, third := all[1].line[x:][:len(first)], all[2].line[x:][:len(first)]
	for i, v := range first {
		a, b, c := v, second[i], third[i]
		if kind == luma || kind == ycck {
			a, b, c = toRGB(int32(v), int32(b)-level, int32(c)-level)
		}
		if kind == ycck { // The colors are the inverse of inks.
			a, b, c = ^a, ^b, ^c
		}
		if kind == cmyk || kind == ycck {
			k := int(all[3].line[x+i])
			if r.adobe < 0 { // inks, not their inverse
				k, a, b, c = 255-k, ^a, ^b, ^c
			}
			a, b, c = uint8(k*int(a)/255), uint8(k*int(b)/255), uint8(k*int(c)/255)
		}
		if r.o.Channels == 1 {
			out = append(out, uint8((19595*int(a)+38470*int(b)+7471*int(c)+1<<15)>>16))
		} else {
			out = append(out, a, b, c)
		}
	}
	return out
}

// toRGB converts a pixel, with 16 fraction bits inside (ITU-R BT.601, full range).
func toRGB(y, cb, cr int32) (r, g, b uint8) {
	const half = 1 << 15
	clamp := func(v int32) uint8 { return uint8(min(max(v, 0), 255)) }
	return clamp(y + (91881*cr+half)>>16), clamp(y + (-22554*cb-46802*cr+half)>>16), clamp(y + (116130*cb+half)>>16)
}

func (s *resampled) row(y int) []uint8 {
	return s.pix[min(max(y, 0), s.height-1)*s.columns*s.size+s.left:][:s.width]
}

// expand sets line to the samples for row y of the pixels. If smooth is set, it interpolates
// between the two nearest samples with weights of 3/4 and 1/4, with the rounding of libjpeg.
func (s *resampled) expand(y int) {
	out, near := s.line, s.row(y/s.down)
	if s.across == 1 && s.down == 1 {
		copy(out, near)
		return
	}
	if !s.smooth {
		for x := range out {
			out[x] = near[x/s.across]
		}
		return
	}
	far := s.row(y/s.down - 1 + 2*(y%s.down))
	sum := func(x int) int { return 3*int(near[x]) + int(far[x]) }
	switch {
	case s.across == 1:
		for x := range out {
			out[x] = uint8((sum(x) + 1 + y%2) >> 2)
		}
	case s.down == 1:
		for x := range out {
			at := x / 2
			other := at - 1 + 2*(x%2)
			if other < 0 || other >= s.width {
				out[x] = near[at]
				continue
			}
			out[x] = uint8((3*int(near[at]) + int(near[other]) + 1 + x%2) >> 2)
		}
	default:
		for x := range out {
			at := x / 2
			other := min(max(at-1+2*(x%2), 0), s.width-1)
			out[x] = uint8((3*sum(at) + sum(other) + 8 - x%2) >> 4)
		}
	}
}
