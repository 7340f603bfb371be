package jpeg

// huffman is a prefix code as files tell it: how many symbols have codes of 1 to 16 bits, and the
// symbols, shortest code first.
type huffman struct {
	counts  [16]uint8
	symbols []byte
}

// codes are the codes of symbols with their lengths in bits.
type codes [256]struct {
	code uint16
	bits uint8
}

func (h *huffman) codes() *codes {
	var all codes
	code, at := uint16(0), 0
	for i, n := range h.counts {
		for range n {
			all[h.symbols[at]].code, all[h.symbols[at]].bits = code, uint8(i+1)
			code, at = code+1, at+1
		}
		code <<= 1
	}
	return &all
}

// frequencies count symbols; the last stands for the code of ones alone, which files may not use.
type frequencies [257]int

// best returns the code that makes symbols of these frequencies shortest (annex K.2). Of equal ones
// the greatest symbols are joined first, as libjpeg does.
func (f frequencies) best() huffman {
	f[256] = 1
	// bits of each code; the chains of symbols that were joined, 1 more than the index
	var size, next [257]int
	for {
		least, second := f.least(-1), 0
		if second = f.least(least); second < 0 {
			break
		}
		f[least], f[second] = f[least]+f[second], 0
		end := least
		for size[end]++; next[end] > 0; size[end]++ {
			end = next[end] - 1
		}
		next[end] = second + 1
		for end = second; ; end = next[end] - 1 {
			if size[end]++; next[end] == 0 {
				break
			}
		}
	}
	return limited(&size)
}

// least returns the rarest symbol that occurs, the greatest of several, other than one; -1 if there
// is none.
func (f *frequencies) least(other int) int {
	found := -1
	for i, n := range f {
		if n > 0 && i != other && (found < 0 || n <= f[found]) {
			found = i
		}
	}
	return found
}

// limited returns a code of at most 16 bits for symbols that should have the given sizes.
func limited(size *[257]int) (h huffman) {
	var counts [258]int
	for _, n := range size {
		if n > 0 {
			counts[n]++
		}
	}
	for i := len(counts) - 1; i > 16; i-- {
		for counts[i] > 0 { // two codes become one shorter; a short one makes way for the other
			j := i - 2
			for counts[j] == 0 {
				j--
			}
			counts[i], counts[j] = counts[i]-2, counts[j]-1
			counts[i-1]++
			counts[j+1] += 2
		}
	}
	last := 16
	for counts[last] == 0 {
		last--
	}
	counts[last]-- // the code of ones
	for i := range h.counts {
		h.counts[i] = uint8(counts[i+1])
	}
	for n := 1; n < len(counts); n++ {
		for symbol, have := range size[:256] {
			if have == n {
				h.symbols = append(h.symbols, byte(symbol))
			}
		}
	}
	return h
}

// bitWriter appends bits to a scan, the highest first.
type bitWriter struct {
	out  []byte
	bits uint64
	n    uint
}

func (w *bitWriter) write(bits uint32, n uint) {
	w.bits, w.n = w.bits<<n|uint64(bits&(1<<n-1)), w.n+n
	for w.n >= 8 {
		w.n -= 8
		b := byte(w.bits >> w.n)
		w.out = append(w.out, b)
		if b == 0xff {
			w.out = append(w.out, 0) // so that it is no marker
		}
	}
}

// flush fills the last byte with ones.
func (w *bitWriter) flush() {
	if w.n > 0 {
		w.write(1<<7-1, 8-w.n)
	}
}
