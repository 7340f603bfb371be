package conv

// copyPadded copies the part of an image x [h, w, c] that begins at row top and column left, and is rows x cols large,
// to dst. What lies outside the image is zero.
func copyPadded[T any](dst, x []T, h, w, c, top, left, rows, cols int) {
	before := min(cols, max(0, -left))
	inside := max(0, min(cols-before, w-max(0, left)))
	for r := range rows {
		d := dst[r*cols*c:][:cols*c]
		y := top + r
		if y < 0 || y >= h || inside == 0 {
			clear(d)
			continue
		}
		clear(d[:before*c])
		copy(d[before*c:(before+inside)*c], x[(y*w+max(0, left))*c:])
		clear(d[(before+inside)*c:])
	}
}
