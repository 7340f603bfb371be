// Package indexshuffle shuffles the numbers from 0 to a limit without a table of them.
package indexshuffle

import "math"

// Index returns the place of an index from 0 to limit in the permutation that a key chooses, in an
// even number of rounds, four or more. It encrypts the index with the block cipher Simon (Beaulieu
// et al., 2013), with blocks just large enough for the limit, again and again until the result is
// not beyond it.
func Index(index, limit uint64, key [3]uint32, rounds int) uint64 {
	if limit == 0 {
		return 0
	}
	// rounding makes it smaller for the largest limits, as for TensorFlow
	size := int(math.Ceil(math.Log2(float64(limit))))
	s := simon{width: max(size+size%2, 16) / 2}
	s.schedule(key, rounds)
	for {
		if index = s.encrypt(index); index <= limit {
			return index
		}
	}
}

// simon is the cipher for words of the given width in bits, two to a block.
type simon struct {
	width int
	keys  []uint64
}

func (s *simon) mask() uint64 { return 1<<s.width - 1 }

func (s *simon) rotateLeft(x uint64, n int) uint64 { return (x<<n | x>>(s.width-n)) & s.mask() }

// schedule makes the keys of all rounds.
func (s *simon) schedule(key [3]uint32, rounds int) {
	const constants = 0x7369f885192c0ef5
	for _, k := range key {
		s.keys = append(s.keys, uint64(k)&s.mask())
	}
	sequence := constants & s.mask()
	for i := 3; i < rounds; i++ {
		last := s.keys[i-1]
		k := (0xfffffffc & s.mask()) ^ sequence&1 ^ s.keys[i-3] ^ s.rotateLeft(last, s.width-3) ^ s.rotateLeft(last, s.width-4)
		s.keys = append(s.keys, k)
		sequence >>= 1
	}
}

func (s *simon) encrypt(block uint64) uint64 {
	f := func(x uint64) uint64 { return s.rotateLeft(x, 1)&s.rotateLeft(x, 8) ^ s.rotateLeft(x, 2) }
	left, right := block>>s.width&s.mask(), block&s.mask()
	for i := 0; i+1 < len(s.keys); i += 2 {
		left ^= f(right) ^ s.keys[i]
		right ^= f(left) ^ s.keys[i+1]
	}
	return left<<s.width | right
}
