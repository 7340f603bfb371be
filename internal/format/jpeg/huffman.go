package jpeg

import "github.com/weft-ml/weft/internal/sys/membudget"

// huffman is a prefix code in the form of the file: the number of codes of 1 to 16 bits, and the
// symbols in order of the lengths of their codes.
type huffman struct {
	counts  [16]uint8
	symbols []byte
}

// codes maps symbols to their codes and the lengths in bits.
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

// frequencies counts symbols. The last element reserves the code of all ones, which files must not
// use.
type frequencies [257]int

// best returns the optimal code for the frequencies (annex K.2). Of several symbols with the same
// frequency the greatest is merged first, as in libjpeg.
func (f frequencies) best() huffman {
	f[256] = 1
	// size is the length of each code in bits; next links merged symbols, as index + 1
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

// least returns the symbol with the lowest frequency above zero, except other, and the greatest of
// several. It returns -1 if there is none.
func (f *frequencies) least(other int) int {
	found := -1
	for i, n := range f {
		if n > 0 && i != other && (found < 0 || n <= f[found]) {
			found = i
		}
	}
	return found
}

// limited returns a code with at most 16 bits per symbol, for symbols whose optimal codes have the
// given lengths.
func limited(size *[257]int) (h huffman) {
	var counts [258]int
	for _, n := range size {
		if n > 0 {
			counts[n]++
		}
	}
	for i := len(counts) - 1; i > 16; i-- {
		// one of two codes becomes shorter; a shorter code is split for the other
		for counts[i] > 0 {
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
	counts[last]-- // the code of all ones
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

// A bitWriter appends bits to a scan, most significant first.
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
		w.out = membudget.Append(w.out, b)
		if b == 0xff {
			w.out = membudget.Append(w.out, 0) // distinguishes the byte from a marker
		}
	}
}

// flush pads the last byte with ones.
func (w *bitWriter) flush() {
	if w.n > 0 {
		w.write(1<<7-1, 8-w.n)
	}
}
