package jpeg

// bitReader reads the bits of the entropy-coded part of a scan. Zeros without end follow, since a
// damaged file may have a marker too early.
type bitReader struct {
	data   string
	at     int // of the next byte
	ahead  uint64
	n      int // bits in ahead
	zeros  int // bits after the end that were appended to ahead
	ended  bool
	marker bool // the part ended at a marker, which is at b.at
}

// fill makes at least 32 bits available.
func (b *bitReader) fill() {
	for b.n <= 56 {
		var v byte
		switch {
		case b.ended:
		case b.at >= len(b.data):
			b.ended = true
		default:
			if v = b.data[b.at]; v != 0xff {
				b.at++
				break
			}
			next := b.at + 1
			for next < len(b.data) && b.data[next] == 0xff { // padding
				next++
			}
			switch {
			case next >= len(b.data):
				b.at, b.ended, v = len(b.data), true, 0
			case b.data[next] == 0: // the byte 0xff
				b.at = next + 1
			default:
				b.at, b.ended, b.marker, v = next-1, true, true, 0
			}
		}
		b.ahead, b.n = b.ahead<<8|uint64(v), b.n+8
		if b.ended {
			b.zeros += 8
		}
	}
}

// peek returns the next n bits, at most 16.
func (b *bitReader) peek(n int) int {
	if b.n < n {
		b.fill()
	}
	return int(b.ahead>>(b.n-n)) & (1<<n - 1)
}

// take returns the next n bits, at most 16.
func (b *bitReader) take(n int) int {
	v := b.peek(n)
	b.n -= n
	return v
}

// signed returns a number of n bits. The first bit of negative numbers is 0.
func (b *bitReader) signed(n int) int {
	return extend(b.take(n), n)
}

// extend returns the number that the n bits v stand for.
func extend(v, n int) int {
	if n > 0 && v < 1<<(n-1) {
		v += -1<<n + 1
	}
	return v
}

// restart continues after a restart marker, or stays at the marker that is there instead.
func (b *bitReader) restart() {
	b.ahead, b.n, b.zeros = 0, 0, 0
	b.fill() // finds the marker, if damage has left bytes before it
	for !b.ended {
		b.ahead, b.n = 0, 0
		b.fill()
	}
	if b.atRestart() {
		b.at += 2
		b.ended, b.marker = false, false
	}
	b.ahead, b.n, b.zeros = 0, 0, 0
}

// atRestart reports whether the part ended at a restart marker.
func (b *bitReader) atRestart() bool {
	return b.marker && b.data[b.at+1] >= firstRestart && b.data[b.at+1] < firstRestart+8
}

// lookupBits is the length of the codes that one lookup decodes.
const lookupBits = 9

// decoder decodes the symbols of a prefix code.
type decoder struct {
	short   [1 << lookupBits]uint16 // the length in bits and the symbol, 0 for longer codes
	last    [17]int                 // the last code of each length, -1 if there is none
	offset  [17]int                 // of the codes of a length in symbols
	symbols []byte
}

// decoder returns false if the code does not exist.
func (h *huffman) decoder() (*decoder, bool) {
	d := &decoder{symbols: h.symbols}
	code, at := 0, 0
	for i, n := range h.counts {
		bits := i + 1
		d.offset[bits], d.last[bits] = at-code, -1
		if int(n) > 1<<bits-code {
			return nil, false
		}
		for range n {
			if bits <= lookupBits {
				for k := range 1 << (lookupBits - bits) {
					d.short[code<<(lookupBits-bits)|k] = uint16(bits)<<8 | uint16(h.symbols[at])
				}
			}
			d.last[bits] = code
			code, at = code+1, at+1
		}
		code <<= 1
	}
	return d, true
}

// next returns the next symbol, 0 for bits that are not a code.
func (d *decoder) next(b *bitReader) int {
	v := b.peek(16)
	if e := d.short[v>>(16-lookupBits)]; e != 0 {
		b.n -= int(e >> 8)
		return int(e & 0xff)
	}
	for bits := lookupBits + 1; bits <= 16; bits++ {
		if code := v >> (16 - bits); code <= d.last[bits] {
			b.n -= bits
			return int(d.symbols[code+d.offset[bits]])
		}
	}
	b.n -= 16
	return 0
}
