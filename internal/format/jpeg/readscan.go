package jpeg

import "slices"

// scanned holds what a scan has of coefficients: those from first to last in the order of the file,
// and of those, the bits above low. high is low of the scan before, 0 in the first one.
type scanned struct{ first, last, high, low int }

// readScan reads a scan: its header, and the blocks of its components.
func (r *reader) readScan(body string) error {
	if len(r.planes) == 0 || len(body) < 1 || body[0] == 0 || body[0] > 4 || len(body) != 4+2*int(body[0]) {
		return errInvalid
	}
	if r.scans == 0 {
		r.prepare()
	}
	var planes []*plane
	blocks := 0
	for c := body[1 : len(body)-3]; len(c) > 0; c = c[2:] {
		p := r.plane(c[0])
		if p == nil || slices.Contains(planes, p) || c[1]>>4 > 3 || c[1]&15 > 3 {
			return errInvalid
		}
		p.dc, p.ac = int(c[1]>>4), int(c[1]&15)
		planes, blocks = append(planes, p), blocks+p.across*p.down
	}
	if len(planes) > 1 && blocks > 10 {
		return errInvalid
	}
	tail := body[len(body)-3:]
	s := scanned{int(tail[0]), int(tail[1]), int(tail[2] >> 4), int(tail[2] & 15)}
	block, err := r.blocks(planes, s)
	if err != nil {
		return err
	}
	for _, p := range planes {
		if !p.seen {
			if r.quantizers[p.table] == nil {
				return errInvalid
			}
			p.quantizer, p.seen = *r.quantizers[p.table], true
			if r.o.Fast && p.size == 8 {
				scaleFast(&p.quantizer)
			}
		}
	}
	r.bitReader = bitReader{data: r.data, at: r.at}
	r.scans++
	return r.readUnits(planes, block)
}

func (r *reader) plane(id byte) *plane {
	for _, p := range r.planes {
		if p.id == id {
			return p
		}
	}
	return nil
}

// blocks returns the function that decodes a block in a scan.
func (r *reader) blocks(planes []*plane, s scanned) (func(p *plane, x, y int), error) {
	codes := func(class int) bool {
		for _, p := range planes {
			if r.codes[class][[2]int{p.dc, p.ac}[class]] == nil {
				return false
			}
		}
		return true
	}
	if !r.progressive {
		if !codes(0) || !codes(1) {
			return nil, errInvalid
		}
		return r.sequential, nil
	}
	if s.last > 63 || s.first > s.last || s.low > 13 || s.high != 0 && s.high-1 != s.low {
		return nil, errInvalid
	}
	at := func(p *plane, x, y int) *[64]int16 { return (*[64]int16)(p.coefficients[64*(y*p.columns+x):]) }
	switch {
	case s.first == 0:
		if s.last != 0 || s.high == 0 && !codes(0) {
			return nil, errInvalid
		}
		if s.high > 0 {
			return func(p *plane, x, y int) { at(p, x, y)[0] |= int16(r.take(1) << s.low) }, nil
		}
		return func(p *plane, x, y int) { at(p, x, y)[0] = int16(r.dcOf(p) << s.low) }, nil
	case len(planes) > 1 || !codes(1):
		return nil, errInvalid
	case s.high > 0:
		return func(p *plane, x, y int) { r.refine(at(p, x, y), r.codes[1][p.ac], s) }, nil
	}
	return func(p *plane, x, y int) { r.begin(at(p, x, y), r.codes[1][p.ac], s) }, nil
}

// ctxUnits is the number of units that are decoded without a look at the context: files of a few
// kilobytes can have scans of millions of empty blocks.
const ctxUnits = 1 << 12

// readUnits decodes the blocks of a scan: the blocks of a single component row by row, or units
// with the blocks of all components for the same pixels.
func (r *reader) readUnits(planes []*plane, block func(p *plane, x, y int)) error {
	columns, rows := planes[0].width, planes[0].height
	if len(planes) > 1 {
		columns, rows = ceil(r.width, 8*r.across), ceil(r.height, 8*r.down)
	}
	r.reset(planes)
	for i := 0; i < columns*rows; i++ {
		if r.interval > 0 && i > 0 && i%r.interval == 0 {
			r.restart()
			r.reset(planes)
		}
		if i%ctxUnits == 0 && r.ctx.Err() != nil {
			return r.ctx.Err()
		}
		x, y := i%columns, i/columns
		if len(planes) == 1 {
			block(planes[0], x, y)
		} else {
			for _, p := range planes {
				for k := range p.across * p.down {
					block(p, x*p.across+k%p.across, y*p.down+k/p.across)
				}
			}
		}
		if r.n >= r.zeros {
			continue
		}
		// There are no bits for the rest of the blocks. They stay as they are up to a restart
		// marker.
		if !r.marker {
			return errShort
		}
		if r.interval == 0 || !r.atRestart() {
			break
		}
		i += r.interval - 1 - i%r.interval
	}
	// The next segment begins at the marker that ended the scan, or after the bytes that were used.
	if !r.ended {
		for used := r.n / 8; used > 0 && r.at > 0; used-- {
			if r.at--; r.data[r.at] == 0 && r.data[r.at-1] == 0xff {
				r.at--
			}
		}
	}
	return nil
}

func (r *reader) reset(planes []*plane) {
	r.eobRun = 0
	for _, p := range planes {
		p.predicted = 0
	}
}

// dcOf returns the next DC coefficient, which is coded as the difference from the one before.
func (r *reader) dcOf(p *plane) int {
	p.predicted += r.signed(r.codes[0][p.dc].next(&r.bitReader) & 15)
	return p.predicted
}

// sequential decodes a block whole, and transforms it.
func (r *reader) sequential(p *plane, x, y int) {
	var c [64]int16
	c[0] = int16(r.dcOf(p))
	code := r.codes[1][p.ac]
	last := 0
	for k := 1; k < 64; k++ {
		if r.n < 32 { // enough for a symbol and its number
			r.fill()
		}
		v := code.next(&r.bitReader)
		skip, n := v>>4, v&15
		if n == 0 {
			if skip != 15 {
				break
			}
			k += 15
			continue
		}
		k += skip
		r.n -= n
		last = k
		c[zigzag[min(k, 63)]] = int16(extend(int(r.ahead>>r.n)&(1<<n-1), n))
	}
	if !p.needed {
		return
	}
	stride := p.columns * p.size
	out := p.pix[y*p.size*stride+x*p.size:]
	if last == 0 && p.size == 8 {
		if v := int32(c[0]) * p.quantizer[0]; r.o.Fast {
			constant(v>>(fastBits+3), out, stride)
		} else {
			constant(round(v, 3), out, stride)
		}
		return
	}
	p.idct(&c, &p.quantizer, out, stride)
}

// begin decodes the high bits of AC coefficients (ITU-T T.81, annex G.1.2.2).
func (r *reader) begin(c *[64]int16, code *decoder, s scanned) {
	if r.eobRun > 0 {
		r.eobRun--
		return
	}
	for k := s.first; k <= s.last; k++ {
		v := code.next(&r.bitReader)
		skip, n := v>>4, v&15
		switch {
		case n > 0:
			k += skip
			c[zigzag[min(k, 63)]] = int16(r.signed(n) << s.low)
		case skip == 15:
			k += 15
		default: // the rest of this block, and of the next ones, is zero
			if r.eobRun = 1<<skip - 1; skip > 0 {
				r.eobRun += r.take(skip)
			}
			return
		}
	}
}

// refine decodes one more bit of AC coefficients (annex G.1.2.3).
func (r *reader) refine(c *[64]int16, code *decoder, s scanned) {
	one := int16(1) << s.low
	// correct reads the bit of a coefficient that is not zero.
	correct := func(v *int16) {
		if r.take(1) == 0 || *v&one != 0 {
			return
		}
		if *v >= 0 {
			*v += one
		} else {
			*v -= one
		}
	}
	k := s.first
	if r.eobRun == 0 {
	next:
		for k <= s.last {
			v := code.next(&r.bitReader)
			skip, fresh := v>>4, int16(0)
			switch {
			case v&15 > 0:
				if fresh = -one; r.take(1) == 1 {
					fresh = one
				}
			case skip < 15:
				if r.eobRun = 1 << skip; skip > 0 {
					r.eobRun += r.take(skip)
				}
				break next
			}
			for ; k <= s.last; k++ {
				at := &c[zigzag[k]]
				if *at != 0 {
					correct(at)
				} else if skip--; skip < 0 {
					*at = fresh
					k++
					break
				}
			}
		}
	}
	if r.eobRun > 0 {
		for ; k <= s.last; k++ {
			if at := &c[zigzag[k]]; *at != 0 {
				correct(at)
			}
		}
		r.eobRun--
	}
}
