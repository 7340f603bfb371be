// Package siphash implements SipHash-2-4 of Jean-Philippe Aumasson and Daniel J. Bernstein: a
// 64-bit hash with a 128-bit key. Without the key, an attacker cannot produce collisions.
package siphash

import (
	"encoding/binary"
	"math/bits"
)

// Sum64 returns the hash of s under a key.
func Sum64(key0, key1 uint64, s []byte) uint64 {
	v := state{key0 ^ 0x736f6d6570736575, key1 ^ 0x646f72616e646f6d, key0 ^ 0x6c7967656e657261, key1 ^ 0x7465646279746573}
	length := uint64(len(s)) << 56
	for ; len(s) >= 8; s = s[8:] {
		v.absorb(binary.LittleEndian.Uint64(s))
	}
	var tail [8]byte
	copy(tail[:], s)
	v.absorb(binary.LittleEndian.Uint64(tail[:]) | length)
	v[2] ^= 0xff
	for range 4 {
		v.round()
	}
	return v[0] ^ v[1] ^ v[2] ^ v[3]
}

type state [4]uint64

func (v *state) absorb(m uint64) {
	v[3] ^= m
	v.round()
	v.round()
	v[0] ^= m
}

func (v *state) round() {
	v[0] += v[1]
	v[1] = bits.RotateLeft64(v[1], 13) ^ v[0]
	v[0] = bits.RotateLeft64(v[0], 32)
	v[2] += v[3]
	v[3] = bits.RotateLeft64(v[3], 16) ^ v[2]
	v[0] += v[3]
	v[3] = bits.RotateLeft64(v[3], 21) ^ v[0]
	v[2] += v[1]
	v[1] = bits.RotateLeft64(v[1], 17) ^ v[2]
	v[2] = bits.RotateLeft64(v[2], 32)
}
