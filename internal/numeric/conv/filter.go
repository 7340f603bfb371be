package conv

import "github.com/weft-ml/weft/internal/numeric/microkernel"

// panel is a group of output channels that one tile computes.
type panel struct {
	group      int
	col        int // first channel, counted over all groups
	vecs, last int // vectors, and channels in the last one
	rows       int // outputs of a tile
	at         int // position in the packed filter
}

// setPanels divides the output channels into panels and allocates their filters. It uses wide tiles
// where the width of the output suits them.
func (c *correlation[T]) setPanels() {
	k, lanes := c.kern, c.kern.Lanes
	wide := k.WideRows > 0 && (c.outW < k.WideRows || c.outW%k.WideRows == 0)
	depth := c.filterH * c.filterW * c.inC
	c.panels = c.panels[:0]
	at := 0
	for g := range c.groups {
		for col := 0; col < c.outC; {
			p := panel{group: g, col: g*c.outC + col, at: at, rows: k.Rows}
			cols := min(k.Width(), c.outC-col)
			if wide && c.outC-col >= k.WideVecs*lanes {
				cols, p.rows = k.WideVecs*lanes, k.WideRows
			}
			p.vecs, p.last = k.VecsFor(cols)
			c.panels = append(c.panels, p)
			at += depth * p.vecs * lanes
			col += cols
		}
	}
	microkernel.Resize(&c.filter, at)
}

// packFilter packs a filter [filterH, filterW, inC, outs] into panels.
func (c *correlation[T]) packFilter(f []T) {
	c.setPanels()
	depth := c.filterH * c.filterW * c.inC
	for _, p := range c.panels {
		c.kern.PackRows(c.filter[p.at:], f[p.col:], p.vecs*c.kern.Lanes, c.outs(), depth, p.channels(c.kern.Lanes))
	}
}

func (p panel) channels(lanes int) int { return (p.vecs-1)*lanes + p.last }

// taps selects the filter elements, in one dimension, of a phase of a transposed convolution:
// first, first+step, and so on, count in total.
type taps struct{ first, step, count int }

// packTurned packs the part of a filter [·, width, outC, pixel] that the taps select, flipped in
// both dimensions and with input and output channels exchanged. This is the filter of an input's
// gradient. outC and pixel are those of the correlation.
func (c *correlation[T]) packTurned(f []T, width int, rows, cols taps) {
	c.setPanels()
	lanes := c.kern.Lanes
	for _, p := range c.panels {
		dst := c.filter[p.at:]
		for a := range rows.count {
			row := rows.first + (rows.count-1-a)*rows.step
			for b := range cols.count {
				col := cols.first + (cols.count-1-b)*cols.step
				src := f[((row*width+col)*c.outC+p.col-p.group*c.outC)*c.pixel+p.group*c.inC:]
				for v := 0; v < p.channels(lanes); v += lanes {
					n := min(lanes, p.channels(lanes)-v)
					c.kern.PackColumns(dst[v:], src[v*c.pixel:], p.vecs*lanes, c.pixel, n, c.inC)
				}
				dst = dst[c.inC*p.vecs*lanes:]
			}
		}
	}
}
