// Package philox generates the random numbers that TensorFlow generates from the same seeds, bit
// for bit.
//
// A [Generator] is Philox4x32-10 (Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", SC
// 2011). It is a function of a key and a counter, so any part of a stream can be computed
// independently. A [Distribution] describes how samples are computed from the outputs of a
// generator. Samples come in groups, each from its own position in the stream. A tensor is
// therefore the same for any number of cores that fill it.
package philox

import "math/bits"

// Generator is a position in a stream of random numbers. Copies are independent of each other.
type Generator struct {
	counter [4]uint32
	key     [2]uint32
}

// New returns the start of the stream for a pair of seeds. The first seed is the key, and the
// second one the upper half of the counter.
func New(seed, seed2 uint64) Generator { return At(seed, 0, seed2) }

// At returns the position with a 128-bit counter in the stream of a key.
func At(key, counterLow, counterHigh uint64) Generator {
	return Generator{
		counter: [4]uint32{uint32(counterLow), uint32(counterLow >> 32), uint32(counterHigh), uint32(counterHigh >> 32)},
		key:     [2]uint32{uint32(key), uint32(key >> 32)},
	}
}

// FromPair returns the stream of stateless operations for a seed of two numbers, which it scrambles
// first.
func FromPair(seed, seed2 uint64) Generator {
	const mixKey = 0x02461e293ec8f720
	g := At(mixKey, seed, seed2)
	mix := g.Next()
	return At(uint64(mix[1])<<32|uint64(mix[0]), 0, uint64(mix[3])<<32|uint64(mix[2]))
}

// Key returns the key.
func (g *Generator) Key() uint64 { return uint64(g.key[1])<<32 | uint64(g.key[0]) }

// Counter returns the counter.
func (g *Generator) Counter() (low, high uint64) {
	return uint64(g.counter[1])<<32 | uint64(g.counter[0]), uint64(g.counter[3])<<32 | uint64(g.counter[2])
}

// Skip advances by n outputs. As in TensorFlow, it advances by 1<<64 less if the upper half of n
// plus a carry is 1<<32.
func (g *Generator) Skip(n uint64) {
	first, carry := bits.Add32(g.counter[0], uint32(n), 0)
	second, carry := bits.Add32(g.counter[1], uint32(n>>32)+carry, 0)
	high := (uint64(g.counter[3])<<32 | uint64(g.counter[2])) + uint64(carry)
	g.counter = [4]uint32{first, second, uint32(high), uint32(high >> 32)}
}

// Constants of the generator.
const (
	mul0, mul1   = 0xD2511F53, 0xCD9E8D57
	weyl0, weyl1 = 0x9E3779B9, 0xBB67AE85
	rounds       = 10
)

// Next returns the output at the current position and advances by one.
func (g *Generator) Next() [4]uint32 {
	c0, c1, c2, c3 := g.counter[0], g.counter[1], g.counter[2], g.counter[3]
	k0, k1 := g.key[0], g.key[1]
	for range rounds {
		p0, p1 := uint64(mul0)*uint64(c0), uint64(mul1)*uint64(c2)
		c0, c1, c2, c3 = uint32(p1>>32)^c1^k0, uint32(p1), uint32(p0>>32)^c3^k1, uint32(p0)
		k0, k1 = k0+weyl0, k1+weyl1
	}
	if g.counter[0]++; g.counter[0] == 0 {
		g.counter[0]--
		g.Skip(1)
	}
	return [4]uint32{c0, c1, c2, c3}
}
