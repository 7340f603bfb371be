package executor

import "encoding/binary"

// rootFrame is the id of the frame outside of loops.
const rootFrame = 0

// childFrame returns the id of the instance of a frame that is entered from one iteration of its parent; name is the hash
// of the frame's name. Ids are part of rendezvous keys: all tasks that run parts of one loop must find the same ones, so
// the formula is TensorFlow's.
func childFrame(parent uint64, iter int64, name uint64) uint64 {
	return combine(parent, combine(uint64(iter), name))
}

func combine(a, b uint64) uint64 { return a ^ (b + 0x9e3779b97f4a7800 + a<<10 + a>>4) }

// hashName is a 64-bit Murmur hash.
func hashName(s string) uint64 {
	const (
		mul   = 0xc6a4a7935bd1e995
		shift = 47
		seed  = 0xDECAFCAFFE
	)
	h := seed ^ uint64(len(s))*mul
	data := []byte(s)
	for ; len(data) >= 8; data = data[8:] {
		k := binary.LittleEndian.Uint64(data) * mul
		k ^= k >> shift
		h = (h ^ k*mul) * mul
	}
	if len(data) > 0 {
		for i, b := range data {
			h ^= uint64(b) << (8 * i)
		}
		h *= mul
	}
	h = (h ^ h>>shift) * mul
	return h ^ h>>shift
}
