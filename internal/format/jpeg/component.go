package jpeg

import "github.com/weft-ml/weft/internal/sys/membudget"

// block holds quantized coefficients in the order of the file.
type block [64]int16

// A component is one transformed color component of the image.
type component struct {
	id            int
	table         int // 0 for luminance, 1 for chrominance
	across, down  int // blocks in a minimum coded unit (MCU)
	width, height int // in blocks
	stride        int // blocks in a row, including the padding to whole MCUs
	blocks        []block
}

// samples are the samples of one color component. Rows are padded to stride with their last sample.
type samples struct {
	pix            []uint8
	stride, height int
}

func (s *samples) row(y int) []uint8 { return s.pix[y*s.stride:][:s.stride] }

// halved returns the samples at half the resolution: means of 2 by 2 samples, alternately rounded
// down and up.
func (s *samples) halved() samples {
	out := samples{stride: s.stride / 2, height: (s.height + 1) / 2}
	out.pix = membudget.Make[uint8](out.stride * out.height)
	for y := range out.height {
		top, bottom, to := s.row(2*y), s.row(min(2*y+1, s.height-1)), out.row(y)
		for x := range to {
			to[x] = uint8((int(top[2*x]) + int(top[2*x+1]) + int(bottom[2*x]) + int(bottom[2*x+1]) + 1 + x%2) >> 2)
		}
	}
	return out
}

// separate converts an image to its components: YCbCr as JFIF defines it, or luminance alone.
func separate(pix []uint8, height, width, channels int) []samples {
	const half, middle = 1 << 15, 128<<16 + 1<<15 - 1
	all := make([]samples, channels)
	stride := (width + 15) &^ 15
	for c := range all {
		all[c] = samples{membudget.Make[uint8](stride * height), stride, height}
	}
	for y := range height {
		from := pix[y*width*channels:][:width*channels]
		if channels == 1 {
			copy(all[0].row(y), from)
		} else {
			luma, blue, red := all[0].row(y), all[1].row(y), all[2].row(y)
			for x := range width {
				r, g, b := int(from[3*x]), int(from[3*x+1]), int(from[3*x+2])
				luma[x] = uint8((19595*r + 38470*g + 7471*b + half) >> 16)
				blue[x] = uint8((-11059*r - 21709*g + 32768*b + middle) >> 16)
				red[x] = uint8((32768*r - 27439*g - 5329*b + middle) >> 16)
			}
		}
		for c := range all {
			row := all[c].row(y)
			for x := width; x < stride; x++ {
				row[x] = row[width-1]
			}
		}
	}
	return all
}

// transform computes the blocks of the component.
func (c *component) transform(s *samples, quantizer *[64]uint8) {
	rows := (c.height + c.down - 1) / c.down * c.down
	c.stride = (c.width + c.across - 1) / c.across * c.across
	c.blocks = membudget.Make[block](c.stride * rows)
	for y := range c.height {
		row := c.blocks[y*c.stride:][:c.stride]
		for x := range c.width {
			row[x].fill(s, x, y, quantizer)
		}
		for x := c.width; x < c.stride; x++ {
			row[x][0] = row[x-1][0] // takes the fewest bits
		}
	}
	for y := c.height; y < rows; y++ {
		above, row := c.blocks[(y-1)*c.stride:], c.blocks[y*c.stride:][:c.stride]
		for x := range row {
			row[x][0] = above[x/c.across*c.across+c.across-1][0]
		}
	}
}

// fill sets the coefficients of block x, y. Rows below the image repeat its last row.
func (b *block) fill(s *samples, x, y int, quantizer *[64]uint8) {
	var work [64]int32
	for i := range 8 {
		from := s.row(min(8*y+i, s.height-1))[8*x:][:8]
		for j, v := range from {
			work[8*i+j] = int32(v) - 128
		}
	}
	transform(&work)
	for k, at := range zigzag {
		v, q := work[at], int32(quantizer[at])*8
		switch {
		case v >= q/2:
			b[k] = int16((v + q/2) / q)
		case -v >= q/2:
			b[k] = -int16((-v + q/2) / q)
		}
	}
}
