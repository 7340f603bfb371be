package jpeg

import "math"

// level is the sample for the value 0.
const level = 128

func sample(v int32) uint8 { return uint8(min(max(v+level, 0), 255)) }

// constant sets the 8x8 samples of a block without AC coefficients.
func constant(v int32, out []uint8, stride int) {
	s := sample(v)
	for y := range 8 {
		row := out[y*stride:][:8]
		for x := range row {
			row[x] = s
		}
	}
}

// inverse sets the 8x8 samples of a block from its coefficients, with the rounding of libjpeg
// (Loeffler, Ligtenberg and Moschytz, 1989).
func inverse(c *[64]int16, q *[64]int32, out []uint8, stride int) {
	var b [64]int32
	for i := range 8 {
		v := func(k int) int32 { return int32(c[i+8*k]) * q[i+8*k] }
		if c[i+8]|c[i+16]|c[i+24]|c[i+32]|c[i+40]|c[i+48]|c[i+56] == 0 {
			for k := range 8 {
				b[i+8*k] = v(0) << extraBits
			}
			continue
		}
		r := inverseLine(v(0), v(1), v(2), v(3), v(4), v(5), v(6), v(7), fractionBits-extraBits)
		for k := range 8 {
			b[i+8*k] = r[k]
		}
	}
	for y := range 8 {
		v := b[8*y : 8*y+8 : 8*y+8]
		r := inverseLine(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], fractionBits+extraBits+3)
		row := out[y*stride:][:8]
		for x := range row {
			row[x] = sample(r[x])
		}
	}
}

// inverseLine transforms 8 values, and divides the results by 2^shift.
func inverseLine(v0, v1, v2, v3, v4, v5, v6, v7 int32, shift int) [8]int32 {
	turn := (v2 + v6) * f0541
	low, high := turn-v6*f1847, turn+v2*f0765
	sum, diff := (v0+v4)<<fractionBits, (v0-v4)<<fractionBits
	e0, e1, e2, e3 := sum+high, diff+low, diff-low, sum-high

	turn = (v7 + v3 + v5 + v1) * f1175
	outer, inner := -(v7+v1)*f0899, -(v5+v3)*f2562
	left, right := turn-(v7+v3)*f1961, turn-(v5+v1)*f0390
	o3, o2 := v7*f0298+outer+left, v5*f2053+inner+right
	o1, o0 := v3*f3072+inner+left, v1*f1501+outer+right

	return [8]int32{
		round(e0+o0, shift), round(e1+o1, shift), round(e2+o2, shift), round(e3+o3, shift),
		round(e3-o3, shift), round(e2-o2, shift), round(e1-o1, shift), round(e0-o0, shift),
	}
}

// The fast transform has 8 fraction bits, and drops what is below (Arai, Agui and Nakajima, 1988).
// The quantizers have its factors of rows and columns, and fastBits fraction bits.
const (
	fastBits = 2

	g1082, g1414, g1847, g2613 = 277, 362, 473, 669
)

// scaleFast multiplies quantizers by the factors of the fast transform.
func scaleFast(q *[64]int32) {
	factor := func(k int) float64 {
		if k == 0 {
			return 1
		}
		return math.Cos(float64(k)*math.Pi/16) * math.Sqrt2
	}
	for i := range q {
		scale := int32(math.Round(factor(i/8) * factor(i%8) * (1 << 14)))
		q[i] = round(q[i]*scale, 14-fastBits)
	}
}

// inverseFast is inverse with less precision.
func inverseFast(c *[64]int16, q *[64]int32, out []uint8, stride int) {
	var b [64]int32
	for i := range 8 {
		v := func(k int) int32 { return int32(c[i+8*k]) * q[i+8*k] }
		if c[i+8]|c[i+16]|c[i+24]|c[i+32]|c[i+40]|c[i+48]|c[i+56] == 0 {
			for k := range 8 {
				b[i+8*k] = v(0)
			}
			continue
		}
		r := fastLine(v(0), v(1), v(2), v(3), v(4), v(5), v(6), v(7))
		for k := range 8 {
			b[i+8*k] = r[k]
		}
	}
	for y := range 8 {
		v := b[8*y : 8*y+8 : 8*y+8]
		r := fastLine(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7])
		row := out[y*stride:][:8]
		for x := range row {
			row[x] = sample(r[x] >> (fastBits + 3))
		}
	}
}

func fastLine(v0, v1, v2, v3, v4, v5, v6, v7 int32) [8]int32 {
	sum, diff, high := v0+v4, v0-v4, v2+v6
	low := (v2-v6)*g1414>>8 - high
	e0, e3, e1, e2 := sum+high, sum-high, diff+low, diff-low

	z13, z10, z11, z12 := v5+v3, v5-v3, v1+v7, v1-v7
	o0 := z11 + z13
	z5 := (z10 + z12) * g1847 >> 8
	o1 := z10*-g2613>>8 + z5 - o0
	o2 := (z11-z13)*g1414>>8 - o1
	o3 := z12*g1082>>8 - z5 + o2

	return [8]int32{e0 + o0, e1 + o1, e2 + o2, e3 - o3, e3 + o3, e2 - o2, e1 - o1, e0 - o0}
}
