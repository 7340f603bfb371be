package jpeg

import "math/bits"

// A scan is a pass over the image. It holds the coefficients first to last of all blocks of some
// components, without the bits from high on (unless high is 0), which earlier scans hold, and
// without the bits below low, which later scans hold.
type scan struct {
	components  []*component
	first, last int
	high, low   int
}

// A coder writes the symbols of a scan, or counts them if it has no codes.
type coder struct {
	bitWriter
	counts [2][2]frequencies // of DC and AC symbols, by table
	codes  *[2][2]*codes     // of DC and AC symbols, by table; nil to count

	run     int    // blocks without further coefficients, which are written as one symbol
	pending []byte // correction bits of these blocks
}

// symbol writes the code of a symbol, followed by n bits of v.
func (c *coder) symbol(class, table int, symbol byte, v uint32, n uint) {
	if c.codes == nil {
		c.counts[class][table][symbol]++
		return
	}
	code := &c.codes[class][table][symbol]
	c.write(uint32(code.code), uint(code.bits))
	c.write(v, n)
}

// value writes v after run zeros: a symbol with the number of bits of v, and then the bits. For a
// negative value the bits are those of v-1.
func (c *coder) value(class, table, run int, v int32) {
	n := bits.Len32(uint32(max(v, -v)))
	c.symbol(class, table, byte(run<<4|n), uint32(v+v>>31), uint(n))
}

func (c *coder) raw(bit byte) {
	if c.codes != nil {
		c.write(uint32(bit), 1)
	}
}

func (c *coder) scan(s *scan) {
	var before [3]int32 // DC coefficients of the preceding blocks
	for y, x := range s.units() {
		for i, p := range s.components {
			down, across := p.down, p.across
			if len(s.components) == 1 {
				down, across = 1, 1
			}
			for by := y * down; by < (y+1)*down; by++ {
				for bx := x * across; bx < (x+1)*across; bx++ {
					c.block(s, p, &p.blocks[by*p.stride+bx], &before[i])
				}
			}
		}
	}
	if s.first > 0 {
		c.endRun(s.components[0].table)
	}
	c.flush()
}

// units iterates over the rows and columns of the minimum coded units. With one component a unit is
// a single block.
func (s *scan) units() func(yield func(y, x int) bool) {
	p := s.components[0]
	rows, columns := p.height, p.width
	if len(s.components) > 1 {
		columns = p.stride / p.across
		rows = len(p.blocks) / p.stride / p.down
	}
	return func(yield func(y, x int) bool) {
		for y := range rows {
			for x := range columns {
				if !yield(y, x) {
					return
				}
			}
		}
	}
}

func (c *coder) block(s *scan, p *component, b *block, before *int32) {
	switch {
	case s.first > 0 && s.high > 0:
		c.refine(s, p.table, b)
		return
	case s.first > 0:
		c.approximate(s, p.table, b)
		return
	case s.high > 0:
		c.raw(byte(b[0]>>s.low) & 1)
	default:
		mean := int32(b[0] >> s.low)
		c.value(0, p.table, 0, mean-*before)
		*before = mean
	}
	if s.last > 0 {
		c.sequential(p.table, b)
	}
}

const zeros16 = 0xf0 // the symbol for 16 zeros

// sequential writes all AC coefficients.
func (c *coder) sequential(table int, b *block) {
	run := 0
	for _, v := range b[1:] {
		if v == 0 {
			run++
			continue
		}
		for ; run > 15; run -= 16 {
			c.symbol(1, table, zeros16, 0, 0)
		}
		c.value(1, table, run, int32(v))
		run = 0
	}
	if run > 0 {
		c.symbol(1, table, 0, 0, 0)
	}
}

const (
	maxRun     = 0x7fff        // blocks that one symbol can count
	maxPending = 1000 - 64 + 1 // correction bits of a run, as in libjpeg
)

// approximate writes the high bits of AC coefficients.
func (c *coder) approximate(s *scan, table int, b *block) {
	run := 0
	for _, v := range b[s.first : s.last+1] {
		v := int32(v)
		if v = max(v, -v) >> s.low * (v>>31 | 1); v == 0 {
			run++
			continue
		}
		c.endRun(table)
		for ; run > 15; run -= 16 {
			c.symbol(1, table, zeros16, 0, 0)
		}
		c.value(1, table, run, v)
		run = 0
	}
	if run > 0 {
		if c.run++; c.run == maxRun {
			c.endRun(table)
		}
	}
}

// refine writes the next bit of AC coefficients. A coefficient that was 0 in the earlier scans gets
// a symbol, the others a correction bit.
func (c *coder) refine(s *scan, table int, b *block) {
	var size [64]int16
	end := 0 // last coefficient that becomes 1
	for k := s.first; k <= s.last; k++ {
		if size[k] = max(b[k], -b[k]) >> s.low; size[k] == 1 {
			end = k
		}
	}
	run, kept := 0, len(c.pending)
	flush := func() {
		for _, bit := range c.pending {
			c.raw(bit)
		}
		c.pending, kept = c.pending[:0], 0
	}
	// endRun ends the run before this block. The pending bits from kept on belong to this block and
	// follow its next symbol.
	endRun := func() {
		if c.run == 0 {
			return
		}
		own := append([]byte(nil), c.pending[kept:]...)
		c.pending = c.pending[:kept]
		c.endRun(table)
		c.pending, kept = append(c.pending, own...), 0
	}
	for k := s.first; k <= s.last; k++ {
		if size[k] == 0 {
			run++
			continue
		}
		for ; run > 15 && k <= end; run -= 16 {
			endRun()
			c.symbol(1, table, zeros16, 0, 0)
			flush()
		}
		if size[k] > 1 {
			c.pending = append(c.pending, byte(size[k]&1))
			continue
		}
		endRun()
		positive := uint32(1)
		if b[k] < 0 {
			positive = 0
		}
		c.symbol(1, table, byte(run<<4|1), positive, 1)
		flush()
		run = 0
	}
	if run > 0 || len(c.pending) > kept {
		if c.run++; c.run == maxRun || len(c.pending) > maxPending {
			c.endRun(table)
		}
	}
}

// endRun writes the number of blocks in the run and their correction bits.
func (c *coder) endRun(table int) {
	if c.run == 0 {
		return
	}
	n := bits.Len(uint(c.run)) - 1
	c.symbol(1, table, byte(n<<4), uint32(c.run), uint(n))
	for _, bit := range c.pending {
		c.raw(bit)
	}
	c.run, c.pending = 0, c.pending[:0]
}
