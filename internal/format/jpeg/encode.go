// Package jpeg writes JPEG files that are identical to those of libjpeg, and decodes files to the
// pixels that libjpeg-turbo decodes. image/jpeg rounds differently, and it does not write
// chrominance at full resolution, optimized Huffman codes and progressive files.
package jpeg

import (
	"encoding/binary"

	"github.com/weft-ml/weft/internal/sys/membudget"
)

// Options configure [Encode].
type Options struct {
	Quality     int    // 0 to 100
	Halve       bool   // chrominance has half the resolution in both directions
	Optimize    bool   // compute the optimal Huffman codes for the image
	Progressive bool   // write scans of increasing precision; implies Optimize
	Segments    string // segments at the start of the file, as [Segment] returns them
}

// MaxSize is the maximum width and height of an image in pixels.
const MaxSize = 65500

const (
	startOfImage, endOfImage = 0xd8, 0xd9
	baseline, progressive    = 0xc0, 0xc2
	defineCodes              = 0xc4
	startOfScan              = 0xda
	defineQuantizers         = 0xdb
)

// MaxBody is the maximum size of the body of a segment in bytes.
const MaxBody = 0xffff - 2

// Segment returns a marker with its body, which has at most [MaxBody] bytes.
func Segment(marker byte, body []byte) string {
	head := binary.BigEndian.AppendUint16([]byte{0xff, marker}, uint16(len(body)+2))
	return string(append(head, body...))
}

// Encode returns the file of an image with 1 channel (gray) or 3 channels (red, green, blue) of 8
// bits. The pixels are in row-major order. height and width must be from 1 to [MaxSize].
func Encode(pix []uint8, height, width, channels int, o Options) string {
	out := append([]byte{0xff, startOfImage}, o.Segments...)
	unit := 8
	if o.Halve && channels > 1 {
		unit = 16
	}
	tables := min(channels, 2)
	var quantizer [2][64]uint8
	for t := range tables {
		quantizer[t] = scaled(&quantizers[t], o.Quality)
		body := []byte{byte(t)}
		for _, at := range zigzag {
			body = append(body, quantizer[t][at])
		}
		out = append(out, Segment(defineQuantizers, body)...)
	}
	components := make([]*component, channels)
	for i, s := range separate(pix, height, width, channels) {
		c := &component{id: i + 1, table: min(i, 1), across: 1, down: 1}
		per := unit
		if i == 0 {
			c.across, c.down, per = unit/8, unit/8, 8
		} else if unit > 8 {
			s = s.halved()
		}
		c.width, c.height = (width+per-1)/per, (height+per-1)/per
		c.transform(&s, &quantizer[c.table])
		components[i] = c
	}
	out = append(out, frame(components, height, width, o.Progressive)...)
	for _, s := range scans(components, o.Progressive) {
		out = s.append(out, o.Optimize || o.Progressive)
	}
	out = append(out, 0xff, endOfImage)
	membudget.MustTake(int64(len(out)))
	return string(out)
}

// scaled returns the quantizers for a quality.
func scaled(q *[64]uint8, quality int) (out [64]uint8) {
	quality = max(quality, 1)
	scale := 200 - 2*quality
	if quality < 50 {
		scale = 5000 / quality
	}
	for i, v := range q {
		out[i] = uint8(min(max((int(v)*scale+50)/100, 1), 255))
	}
	return out
}

func frame(components []*component, height, width int, progressively bool) string {
	body := binary.BigEndian.AppendUint16([]byte{8}, uint16(height))
	body = binary.BigEndian.AppendUint16(body, uint16(width))
	body = append(body, byte(len(components)))
	for _, c := range components {
		body = append(body, byte(c.id), byte(c.across<<4|c.down), byte(c.table))
	}
	if progressively {
		return Segment(progressive, body)
	}
	return Segment(baseline, body)
}

// scans returns the only scan of a baseline file, or libjpeg's scans of a progressive file.
func scans(all []*component, progressively bool) []scan {
	if !progressively {
		return []scan{{components: all, last: 63}}
	}
	luma := all[:1]
	if len(all) == 1 {
		return []scan{
			{all, 0, 0, 0, 1}, {luma, 1, 5, 0, 2}, {luma, 6, 63, 0, 2}, {luma, 1, 63, 2, 1}, {all, 0, 0, 1, 0}, {luma, 1, 63, 1, 0},
		}
	}
	blue, red := all[1:2], all[2:]
	return []scan{
		{all, 0, 0, 0, 1}, {luma, 1, 5, 0, 2}, {red, 1, 63, 0, 1}, {blue, 1, 63, 0, 1}, {luma, 6, 63, 0, 2},
		{luma, 1, 63, 2, 1}, {all, 0, 0, 1, 0}, {red, 1, 63, 1, 0}, {blue, 1, 63, 1, 0}, {luma, 1, 63, 1, 0},
	}
}

// append appends the Huffman codes, the header and the data of the scan.
func (s *scan) append(out []byte, optimize bool) []byte {
	var counter coder
	if optimize {
		counter.scan(s)
	}
	means, others := s.first == 0 && s.high == 0, s.last > 0
	var used [2][2]*codes
	head := []byte{byte(len(s.components))}
	for _, c := range s.components {
		selector := byte(0)
		for class, want := range [2]bool{means, others} {
			if !want {
				continue
			}
			selector |= byte(c.table << (4 - 4*class))
			if used[class][c.table] == nil {
				h := standardCodes[class][c.table]
				if optimize {
					h = counter.counts[class][c.table].best()
				}
				used[class][c.table] = h.codes()
				body := append([]byte{byte(class<<4 | c.table)}, h.counts[:]...)
				out = append(out, Segment(defineCodes, append(body, h.symbols...))...)
			}
		}
		head = append(head, byte(c.id), selector)
	}
	head = append(head, byte(s.first), byte(s.last), byte(s.high<<4|s.low))
	w := coder{bitWriter: bitWriter{out: append(out, Segment(startOfScan, head)...)}, codes: &used}
	w.scan(s)
	return w.out
}
