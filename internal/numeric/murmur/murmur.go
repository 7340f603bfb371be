// Package murmur implements the 64-bit MurmurHash2 of Austin Appleby with the default seed of
// TensorFlow's Hash64. Peers compare its values, so it must never change.
package murmur

import "encoding/binary"

const (
	mul  = 0xc6a4a7935bd1e995
	seed = 0xdecafcaffe
)

// Sum64 returns the hash of s.
func Sum64(s string) uint64 {
	h := seed ^ uint64(len(s))*mul
	b := []byte(s)
	for ; len(b) >= 8; b = b[8:] {
		k := binary.LittleEndian.Uint64(b) * mul
		k ^= k >> 47
		h = (h ^ k*mul) * mul
	}
	if len(b) > 0 {
		var tail [8]byte
		copy(tail[:], b)
		h = (h ^ binary.LittleEndian.Uint64(tail[:])) * mul
	}
	h = (h ^ h>>47) * mul
	return h ^ h>>47
}
