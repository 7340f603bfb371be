package jpeg

// More factors of the cosine transform, with fractionBits fraction bits.
const (
	f0211, f0509, f0601, f0720, f0850     = 1730, 4176, 4926, 5906, 6967
	f1061, f1272, f1451, f2172, f3624     = 8697, 10426, 11893, 17799, 29692
	smallFirst, smallSecond           int = fractionBits - extraBits, fractionBits + extraBits + 3
)

// inverse4 sets 4x4 samples, with the rounding of libjpeg.
func inverse4(c *[64]int16, q *[64]int32, out []uint8, stride int) {
	var b [32]int32 // 4 rows
	for i := range 8 {
		if i == 4 {
			continue // a frequency that is too high
		}
		v := func(k int) int32 { return int32(c[i+8*k]) * q[i+8*k] }
		b[i], b[8+i], b[16+i], b[24+i] = inverseLine4(v(0), v(1), v(2), v(3), v(5), v(6), v(7), smallFirst+1)
	}
	for y := range 4 {
		v, row := b[8*y:8*y+8], out[y*stride:][:4]
		s0, s1, s2, s3 := inverseLine4(v[0], v[1], v[2], v[3], v[5], v[6], v[7], smallSecond+1)
		row[0], row[1], row[2], row[3] = sample(s0), sample(s1), sample(s2), sample(s3)
	}
}

func inverseLine4(v0, v1, v2, v3, v5, v6, v7 int32, shift int) (s0, s1, s2, s3 int32) {
	even := v0 << (fractionBits + 1)
	turn := v2*f1847 - v6*f0765
	inner := -v7*f0211 + v5*f1451 - v3*f2172 + v1*f1061
	outer := -v7*f0509 - v5*f0601 + v3*f0899 + v1*f2562
	return round(even+turn+outer, shift), round(even-turn+inner, shift), round(even-turn-inner, shift), round(even+turn-outer, shift)
}

// inverse2 sets 2x2 samples.
func inverse2(c *[64]int16, q *[64]int32, out []uint8, stride int) {
	var b [16]int32 // 2 rows
	for _, i := range []int{0, 1, 3, 5, 7} {
		v := func(k int) int32 { return int32(c[i+8*k]) * q[i+8*k] }
		b[i], b[8+i] = inverseLine2(v(0), v(1), v(3), v(5), v(7), smallFirst+2)
	}
	for y := range 2 {
		v := b[8*y : 8*y+8]
		s0, s1 := inverseLine2(v[0], v[1], v[3], v[5], v[7], smallSecond+2)
		out[y*stride], out[y*stride+1] = sample(s0), sample(s1)
	}
}

func inverseLine2(v0, v1, v3, v5, v7 int32, shift int) (s0, s1 int32) {
	even := v0 << (fractionBits + 2)
	odd := -v7*f0720 + v5*f0850 - v3*f1272 + v1*f3624
	return round(even+odd, shift), round(even-odd, shift)
}

// inverse1 sets one sample.
func inverse1(c *[64]int16, q *[64]int32, out []uint8, _ int) {
	out[0] = sample(round(int32(c[0])*q[0], 3))
}
