package jpeg

// Factors of the transform as fixed-point numbers with 13 fraction bits: sums and differences of
// cosines (Loeffler, Ligtenberg and Moschytz, 1989).
const (
	fractionBits = 13
	extraBits    = 2 // additional fraction bits of the results of the first pass

	f0298, f0390, f0541, f0765, f0899, f1175 = 2446, 3196, 4433, 6270, 7373, 9633
	f1501, f1847, f1961, f2053, f2562, f3072 = 12299, 15137, 16069, 16819, 20995, 25172
)

// transform replaces the samples of a block, centered at 0, by their cosine transform times 8, with
// the rounding of libjpeg.
func transform(b *[64]int32) {
	for i := 0; i < 64; i += 8 {
		line(b, i, 1, -extraBits, fractionBits-extraBits)
	}
	for i := range 8 {
		line(b, i, 8, extraBits, fractionBits+extraBits)
	}
}

// round returns v / 2^n, rounded.
func round(v int32, n int) int32 { return (v + 1<<(n-1)) >> n }

// line transforms 8 values with a distance of step. It divides sums by 2^whole, or multiplies them
// by 2^-whole if whole is negative, and divides products by 2^part.
func line(b *[64]int32, at, step, whole, part int) {
	v := func(i int) *int32 { return &b[(at+i*step)&63] }
	s0, d0 := *v(0)+*v(7), *v(0)-*v(7)
	s1, d1 := *v(1)+*v(6), *v(1)-*v(6)
	s2, d2 := *v(2)+*v(5), *v(2)-*v(5)
	s3, d3 := *v(3)+*v(4), *v(3)-*v(4)

	even, evenDiff, odd, oddDiff := s0+s3, s0-s3, s1+s2, s1-s2
	if whole < 0 {
		*v(0), *v(4) = (even+odd)<<-whole, (even-odd)<<-whole
	} else {
		*v(0), *v(4) = round(even+odd, whole), round(even-odd, whole)
	}
	turn := (evenDiff + oddDiff) * f0541
	*v(2), *v(6) = round(turn+evenDiff*f0765, part), round(turn-oddDiff*f1847, part)

	turn = (d0 + d1 + d2 + d3) * f1175
	outer, inner := -(d0+d3)*f0899, -(d1+d2)*f2562
	left, right := turn-(d1+d3)*f1961, turn-(d0+d2)*f0390
	*v(7), *v(5) = round(d3*f0298+outer+left, part), round(d2*f2053+inner+right, part)
	*v(3), *v(1) = round(d1*f3072+inner+left, part), round(d0*f1501+outer+right, part)
}
