// Package indexshuffle permutes the numbers from 0 to a limit without a table.
package indexshuffle

import "math"

// Index returns the position of an index from 0 to limit in the permutation that a key selects. It
// encrypts the index with the block cipher Simon (Beaulieu et al., 2013), with blocks just large
// enough for the limit, and repeats this until the result does not exceed the limit. rounds must be
// even and at least 4.
func Index(index, limit uint64, key [3]uint32, rounds int) uint64 {
	if limit == 0 {
		return 0
	}
	// As in TensorFlow, rounding makes it smaller for the largest limits.
	size := int(math.Ceil(math.Log2(float64(limit))))
	s := simon{width: max(size+size%2, 16) / 2}
	s.schedule(key, rounds)
	for {
		if index = s.encrypt(index); index <= limit {
			return index
		}
	}
}

// simon is the cipher for blocks of two words with the given width in bits.
type simon struct {
	width int
	keys  []uint64
}

func (s *simon) mask() uint64 { return 1<<s.width - 1 }

func (s *simon) rotateLeft(x uint64, n int) uint64 { return (x<<n | x>>(s.width-n)) & s.mask() }

// schedule computes the keys of all rounds.
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
