// Package farmhash implements the 64-bit fingerprint of Google's FarmHash, by Geoff Pike and Jyrki
// Alakuijala, in the variant "na". Models depend on its values, so they must never change.
package farmhash

import (
	"encoding/binary"
	"math/bits"
)

const (
	k0 = 0xc3a5c85c97cb3127
	k1 = 0xb492b66fbe98f273
	k2 = 0x9ae16a3b2f90404f
)

func at64(s []byte, i int) uint64 { return binary.LittleEndian.Uint64(s[i:]) }

func rotate(v uint64, right int) uint64 { return bits.RotateLeft64(v, -right) }

func shiftMix(v uint64) uint64 { return v ^ v>>47 }

func mix(u, v, mul uint64) uint64 {
	a := shiftMix((u ^ v) * mul)
	return shiftMix((v^a)*mul) * mul
}

// Fingerprint64 returns the fingerprint of s.
func Fingerprint64(s []byte) uint64 {
	switch n := len(s); {
	case n <= 16:
		return hashTo16(s)
	case n <= 32:
		return hashTo32(s)
	case n <= 64:
		return hashTo64(s)
	default:
		return hashLong(s)
	}
}

func hashTo16(s []byte) uint64 {
	n := len(s)
	mul := k2 + 2*uint64(n)
	switch {
	case n >= 8:
		a, b := at64(s, 0)+k2, at64(s, n-8)
		return mix(rotate(b, 37)*mul+a, (rotate(a, 25)+b)*mul, mul)
	case n >= 4:
		a := uint64(binary.LittleEndian.Uint32(s))
		return mix(uint64(n)+a<<3, uint64(binary.LittleEndian.Uint32(s[n-4:])), mul)
	case n > 0:
		y := uint32(s[0]) + uint32(s[n>>1])<<8
		z := uint32(n) + uint32(s[n-1])<<2
		return shiftMix(uint64(y)*k2^uint64(z)*k0) * k2
	default:
		return k2
	}
}

func hashTo32(s []byte) uint64 {
	n := len(s)
	mul := k2 + 2*uint64(n)
	a, b := at64(s, 0)*k1, at64(s, 8)
	c, d := at64(s, n-8)*mul, at64(s, n-16)*k2
	return mix(rotate(a+b, 43)+rotate(c, 30)+d, a+rotate(b+k2, 18)+c, mul)
}

func hashTo64(s []byte) uint64 {
	n := len(s)
	mul := k2 + 2*uint64(n)
	a, b := at64(s, 0)*k2, at64(s, 8)
	c, d := at64(s, n-8)*mul, at64(s, n-16)*k2
	y := rotate(a+b, 43) + rotate(c, 30) + d
	z := mix(y, a+rotate(b+k2, 18)+c, mul)
	e, f := at64(s, 16)*mul, at64(s, 24)
	g, h := (y+at64(s, n-32))*mul, (z+at64(s, n-24))*mul
	return mix(rotate(e+f, 43)+rotate(g, 30)+h, e+rotate(f+a, 18)+g, mul)
}

// pair is a state of 16 bytes.
type pair struct{ lo, hi uint64 }

// weak hashes 32 bytes of s with seeds.
func weak(s []byte, a, b uint64) pair {
	w, x, y, z := at64(s, 0), at64(s, 8), at64(s, 16), at64(s, 24)
	a += w
	b = rotate(b+a+z, 21)
	c := a
	a += x + y
	b += rotate(a, 44)
	return pair{a + z, b + c}
}

// state is the state of hashLong between blocks of 64 bytes.
type state struct {
	x, y, z uint64
	v, w    pair
}

// block mixes in 64 bytes. The last block has other factors.
func (t *state) block(s []byte, mul, factor uint64) {
	t.x = rotate(t.x+t.y+t.v.lo+at64(s, 8), 37) * mul
	t.y = rotate(t.y+t.v.hi+at64(s, 48), 42) * mul
	t.x ^= t.w.hi * factor
	t.y += t.v.lo*factor + at64(s, 40)
	t.z = rotate(t.z+t.w.lo, 33) * mul
	t.v = weak(s, t.v.hi*mul, t.x+t.w.lo)
	t.w = weak(s[32:], t.z+t.w.hi, t.y+at64(s, 16))
	t.z, t.x = t.x, t.z
}

func hashLong(s []byte) uint64 {
	const seed = 81
	var t state
	t.x = seed
	t.y = t.x*k1 + 113 // wraps around
	t.z = shiftMix(t.y*k2+113) * k2
	t.x = t.x*k2 + at64(s, 0)
	last := s[len(s)-64:]
	for rest := s; len(rest) > 64; rest = rest[64:] {
		t.block(rest, k1, 1)
	}
	mul := k1 + (t.z&0xff)<<1
	t.w.lo += uint64(len(s)-1) & 63
	t.v.lo += t.w.lo
	t.w.lo += t.v.lo
	t.block(last, mul, 9)
	return mix(mix(t.v.lo, t.w.lo, mul)+shiftMix(t.y)*k0+t.z, mix(t.v.hi, t.w.hi, mul)+t.x, mul)
}
