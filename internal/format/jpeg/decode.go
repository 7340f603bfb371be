package jpeg

import (
	"context"
	"errors"

	"github.com/weft-ml/weft/internal/sys/membudget"
)

// DecodeOptions configure [Decode].
type DecodeOptions struct {
	Channels int  // of the result: 1 (gray) or 3 (red, green, blue)
	Ratio    int  // 1, 2, 4 or 8: the result has 1/Ratio of the height and width, rounded up
	Smooth   bool // chrominance of lower resolution is interpolated
	Fast     bool // the inverse transform has fewer bits of precision

	// Left and Width choose columns of the result; Width is 0 for all of them. Interpolation ends
	// at the right one, as in libjpeg-turbo.
	Left, Width int
}

// Picture has 8-bit pixels in row-major order.
type Picture struct {
	Height, Width, Channels int
	Pix                     []uint8
}

var (
	errInvalid     = errors.New("jpeg: invalid data")
	errShort       = errors.New("jpeg: the data ends too early")
	errUnsupported = errors.New("jpeg: the coding of the image is not supported")
)

const (
	extended     = 0xc1
	firstRestart = 0xd0
	interval     = 0xdd // of restart markers
	jfif         = 0xe0
	adobe        = 0xee
)

// plane is a component of an image that is decoded.
type plane struct {
	id            byte
	across, down  int // sampling factors
	table         int // of the quantizers
	width, height int // in blocks
	columns, rows int // in blocks, with those that fill the units of a scan
	size          int // of the samples of a block, across and down
	seen, needed  bool
	quantizer     [64]int32 // row-major, when the first scan began
	dc, ac        int       // codes in the current scan
	predicted     int       // the last DC coefficient
	coefficients  []int16   // row-major, in progressive files
	pix           []uint8   // columns*size samples a row
	idct          func(c *[64]int16, q *[64]int32, out []uint8, stride int)
}

// reader decodes a file.
type reader struct {
	bitReader
	ctx           context.Context
	o             DecodeOptions
	planes        []*plane
	height, width int
	progressive   bool
	across, down  int // the greatest sampling factors
	quantizers    [4]*[64]int32
	codes         [2][4]*decoder // DC, AC
	interval      int            // units between restart markers, 0 for none
	jfif          bool
	adobe         int // the transform of Adobe's segment, -1 without one
	scans         int
	eobRun        int
}

// Decode returns the pixels of a file: exactly those of libjpeg-turbo, without its smoothing of
// progressive files that lack scans. It supports files with Huffman codes and 8 bits a sample,
// sequential and progressive, with 1, 3 or 4 components. The error is that of ctx when it ends.
func Decode(ctx context.Context, data string, o DecodeOptions) (*Picture, error) {
	r := &reader{ctx: ctx, bitReader: bitReader{data: data}, o: o, adobe: -1}
	if err := r.read(); err != nil {
		return nil, err
	}
	if len(r.planes) == 0 || r.scans == 0 {
		return nil, errInvalid
	}
	for _, p := range r.planes {
		p.transform()
	}
	return r.picture()
}

// read reads the segments of a file.
func (r *reader) read() error {
	if len(r.data) < 2 || r.data[:2] != "\xff\xd8" {
		return errInvalid
	}
	r.at = 2
	for {
		marker, body, err := r.segment()
		if err != nil {
			if errors.Is(err, errShort) && r.complete() {
				return nil
			}
			return err
		}
		switch marker {
		case endOfImage:
			return nil
		case defineQuantizers:
			err = r.readQuantizers(body)
		case defineCodes:
			err = r.readCodes(body)
		case baseline, extended, progressive:
			r.progressive = marker == progressive
			err = r.readFrame(body)
		case startOfScan:
			err = r.readScan(body)
		case interval:
			if len(body) != 2 {
				return errInvalid
			}
			r.interval = int(body[0])<<8 | int(body[1])
		case jfif:
			r.jfif = r.jfif || len(body) >= 14 && body[:5] == "JFIF\x00"
		case adobe:
			if len(body) >= 12 && body[:5] == "Adobe" {
				r.adobe = int(body[11])
			}
		default:
			if marker > 0xc2 && marker < 0xd0 && marker != 0xc8 && marker != 0xcc {
				err = errUnsupported
			}
		}
		if err != nil {
			return err
		}
	}
}

// complete reports whether a file that ends without a marker has all that there can be.
func (r *reader) complete() bool {
	return !r.progressive && r.scans == 1 && r.planes[len(r.planes)-1].seen
}

// segment returns the next marker and the bytes that belong to it.
func (r *reader) segment() (marker byte, body string, err error) {
	for {
		for r.at < len(r.data) && r.data[r.at] != 0xff {
			r.at++
		}
		for r.at < len(r.data) && r.data[r.at] == 0xff {
			r.at++
		}
		if r.at >= len(r.data) {
			return 0, "", errShort
		}
		marker = r.data[r.at]
		r.at++
		if marker != 0 && marker != 1 && (marker < firstRestart || marker >= firstRestart+8) {
			break
		}
	}
	if marker == startOfImage {
		return 0, "", errInvalid
	}
	if marker == endOfImage {
		return marker, "", nil
	}
	if r.at+2 > len(r.data) {
		return 0, "", errShort
	}
	n := int(r.data[r.at])<<8 | int(r.data[r.at+1])
	if n < 2 {
		return 0, "", errInvalid
	}
	if r.at+n > len(r.data) {
		return 0, "", errShort
	}
	body = r.data[r.at+2 : r.at+n]
	r.at += n
	return marker, body, nil
}

func (r *reader) readQuantizers(body string) error {
	for len(body) > 0 {
		wide, table := body[0]>>4, body[0]&15
		n := 64 << min(wide, 1)
		if table > 3 || len(body) < 1+n {
			return errInvalid
		}
		q := new([64]int32)
		for i, at := range zigzag {
			if wide > 0 {
				q[at] = int32(body[1+2*i])<<8 | int32(body[2+2*i])
			} else {
				q[at] = int32(body[1+i])
			}
		}
		r.quantizers[table], body = q, body[1+n:]
	}
	return nil
}

func (r *reader) readCodes(body string) error {
	for len(body) > 0 {
		if len(body) < 17 || body[0]&15 > 3 || body[0]>>4 > 1 {
			return errInvalid
		}
		var h huffman
		copy(h.counts[:], body[1:17])
		for _, n := range h.counts {
			h.symbols = append(h.symbols, make([]byte, n)...)
		}
		if len(h.symbols) > 256 || copy(h.symbols, body[17:]) < len(h.symbols) {
			return errInvalid
		}
		d, ok := h.decoder()
		if !ok {
			return errInvalid
		}
		r.codes[body[0]>>4][body[0]&15], body = d, body[17+len(h.symbols):]
	}
	return nil
}

// ceil returns a/b, rounded up.
func ceil(a, b int) int { return (a + b - 1) / b }

func (r *reader) readFrame(body string) error {
	if len(r.planes) > 0 || len(body) < 6 || len(body) != 6+3*int(body[5]) {
		return errInvalid
	}
	if body[0] != 8 || body[5] == 0 || body[5] == 2 || body[5] > 4 {
		return errUnsupported
	}
	r.height, r.width = int(body[1])<<8|int(body[2]), int(body[3])<<8|int(body[4])
	if r.height == 0 || r.width == 0 || r.height > MaxSize || r.width > MaxSize {
		return errInvalid
	}
	for c := body[6:]; len(c) > 0; c = c[3:] {
		p := &plane{id: c[0], across: int(c[1] >> 4), down: int(c[1] & 15), table: int(c[2]), needed: true}
		if p.across < 1 || p.across > 4 || p.down < 1 || p.down > 4 || p.table > 3 {
			return errInvalid
		}
		r.across, r.down = max(r.across, p.across), max(r.down, p.down)
		r.planes = append(r.planes, p)
	}
	return nil
}

// prepare makes room for the samples, when the segments before the first scan are known.
func (r *reader) prepare() {
	for i, p := range r.planes {
		p.width, p.height = ceil(r.width*p.across, 8*r.across), ceil(r.height*p.down, 8*r.down)
		p.columns, p.rows = p.across*ceil(r.width, 8*r.across), p.down*ceil(r.height, 8*r.down)
		p.needed = i == 0 || r.o.Channels != 1 || r.colors() != luma
		p.choose(r)
		if p.needed {
			p.pix = membudget.Make[uint8](p.columns * p.rows * p.size * p.size)
		}
		if r.progressive {
			p.coefficients = membudget.Make[int16](p.columns * p.rows * 64)
		}
	}
}

// choose chooses the inverse transform, whose results have the least resolution that the picture
// needs.
func (p *plane) choose(r *reader) {
	least := 8 / r.o.Ratio
	p.size = least
	for p.size < 8 && r.across*least%(p.across*p.size*2) == 0 && r.down*least%(p.down*p.size*2) == 0 {
		p.size *= 2
	}
	switch {
	case p.size == 1:
		p.idct = inverse1
	case p.size == 2:
		p.idct = inverse2
	case p.size == 4:
		p.idct = inverse4
	case r.o.Fast:
		p.idct = inverseFast
	default:
		p.idct = inverse
	}
}

// transform sets the samples of progressive files, and of components without a scan.
func (p *plane) transform() {
	if !p.needed || p.seen && p.coefficients == nil {
		return
	}
	stride := p.columns * p.size
	for y := range p.rows {
		for x := range p.columns {
			var c [64]int16
			if p.coefficients != nil {
				copy(c[:], p.coefficients[64*(y*p.columns+x):])
			}
			p.idct(&c, &p.quantizer, p.pix[y*p.size*stride+x*p.size:], stride)
		}
	}
	p.coefficients = nil
}
