package farmhash

// mixFactor is the factor that mixes the halves of 128-bit hashes.
const mixFactor = 0x9ddfea08eb382d69

// Fingerprint128 returns the 128-bit fingerprint of s, in the variant "cc", in two halves.
func Fingerprint128(s []byte) (lo, hi uint64) {
	seed := pair{k0, k1}
	if len(s) >= 16 {
		seed = pair{at64(s, 0), at64(s, 8) + k0}
		s = s[16:]
	}
	p := hash128(s, seed)
	return p.lo, p.hi
}

func hash128(s []byte, seed pair) pair {
	n := len(s)
	if n < 128 {
		return murmur(s, seed)
	}
	t := state{x: seed.lo, y: seed.hi, z: uint64(n) * k1}
	t.v.lo = rotate(t.y^k1, 49)*k1 + at64(s, 0)
	t.v.hi = rotate(t.v.lo, 42)*k1 + at64(s, 8)
	t.w.lo = rotate(t.y+t.z, 35)*k1 + t.x
	t.w.hi = rotate(t.x+at64(s, 88), 53) * k1
	at := 0
	for ; n-at >= 128; at += 128 {
		t.block(s[at:], k1, 1)
		t.block(s[at+64:], k1, 1)
	}
	t.x += rotate(t.v.lo+t.z, 49) * k0
	t.y = t.y*k0 + rotate(t.w.hi, 37)
	t.z = t.z*k0 + rotate(t.w.lo, 27)
	t.w.lo *= 9
	t.v.lo *= k0
	// Hash the rest from its end, in pieces that may overlap bytes hashed before.
	for end := n; end > at; end -= 32 {
		last := s[end-32:]
		t.y = rotate(t.x+t.y, 42)*k0 + t.v.hi
		t.w.lo += at64(last, 16)
		t.x = t.x*k0 + t.w.lo
		t.z += t.w.hi + at64(last, 0)
		t.w.hi += t.v.lo
		t.v = weak(last, t.v.lo+t.z, t.v.hi)
		t.v.lo *= k0
	}
	x, y := mix(t.x, t.v.lo, mixFactor), mix(t.y+t.z, t.w.lo, mixFactor)
	return pair{mix(x+t.v.hi, t.w.hi, mixFactor) + y, mix(x+t.w.hi, y+t.v.hi, mixFactor)}
}

// murmur hashes a string of less than 128 bytes.
func murmur(s []byte, seed pair) pair {
	a, b := seed.lo, seed.hi
	var c, d uint64
	n := len(s)
	if n <= 16 {
		a = shiftMix(a*k1) * k1
		c = b*k1 + hashTo16(s)
		d = c
		if n >= 8 {
			d = at64(s, 0)
		}
		d = shiftMix(a + d)
	} else {
		c = mix(at64(s, n-8)+k1, a, mixFactor)
		d = mix(b+uint64(n), c+at64(s, n-16), mixFactor)
		a += d
		for at := 0; at < n-16; at += 16 {
			a = (a ^ shiftMix(at64(s, at)*k1)*k1) * k1
			b ^= a
			c = (c ^ shiftMix(at64(s, at+8)*k1)*k1) * k1
			d ^= c
		}
	}
	a, b = mix(a, c, mixFactor), mix(d, b, mixFactor)
	return pair{a ^ b, mix(b, a, mixFactor)}
}
