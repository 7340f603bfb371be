package simd

// thin is the largest width of matrices that Transpose delegates to TransposeThin.
const thin = 15

// TransposeThin is [Transpose] for few rows or few columns, such as the channels of an image. It
// processes four of them at a time, so that it reads the long side once for all four.
func TransposeThin[E any](dst []E, dstStride int, src []E, srcStride, rows, cols int) {
	if rows == 0 || cols == 0 {
		return
	}
	if cols <= rows {
		for n := 0; cols > 0; cols -= n {
			n = unzip(dst, dstStride, src, srcStride, rows, cols)
			if cols > n {
				dst, src = dst[n*dstStride:], src[n:]
			}
		}
		return
	}
	for n := 0; rows > 0; rows -= n {
		n = zip(dst, dstStride, src, srcStride, rows, cols)
		if rows > n {
			dst, src = dst[n:], src[n*srcStride:]
		}
	}
}

// unzip transposes up to four columns and returns their number.
func unzip[E any](dst []E, dstStride int, src []E, srcStride, rows, cols int) int {
	at, a := 0, dst[:rows]
	if cols == 1 {
		for j := range a {
			a[j] = src[at]
			at += srcStride
		}
		return 1
	}
	b := dst[dstStride:][:rows]
	if cols == 2 {
		for j := range a {
			s := src[at : at+2 : at+2]
			a[j], b[j] = s[0], s[1]
			at += srcStride
		}
		return 2
	}
	c := dst[2*dstStride:][:rows]
	if cols == 3 {
		for j := range a {
			s := src[at : at+3 : at+3]
			a[j], b[j], c[j] = s[0], s[1], s[2]
			at += srcStride
		}
		return 3
	}
	d := dst[3*dstStride:][:rows]
	for j := range a {
		s := src[at : at+4 : at+4]
		a[j], b[j], c[j], d[j] = s[0], s[1], s[2], s[3]
		at += srcStride
	}
	return 4
}

// zip transposes up to four rows and returns their number.
func zip[E any](dst []E, dstStride int, src []E, srcStride, rows, cols int) int {
	at, a := 0, src[:cols]
	if rows == 1 {
		for i := range a {
			dst[at] = a[i]
			at += dstStride
		}
		return 1
	}
	b := src[srcStride:][:cols]
	if rows == 2 {
		for i := range a {
			t := dst[at : at+2 : at+2]
			t[0], t[1] = a[i], b[i]
			at += dstStride
		}
		return 2
	}
	c := src[2*srcStride:][:cols]
	if rows == 3 {
		for i := range a {
			t := dst[at : at+3 : at+3]
			t[0], t[1], t[2] = a[i], b[i], c[i]
			at += dstStride
		}
		return 3
	}
	d := src[3*srcStride:][:cols]
	for i := range a {
		t := dst[at : at+4 : at+4]
		t[0], t[1], t[2], t[3] = a[i], b[i], c[i], d[i]
		at += dstStride
	}
	return 4
}
