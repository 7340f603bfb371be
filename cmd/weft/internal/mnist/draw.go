package mnist

import (
	"math"
	"math/rand/v2"
)

// Variation of the digits. As on MNIST, a network with one hidden layer of 100 units reaches an
// accuracy of about 98 %, and a linear model a few percent less.
const (
	maxTurn    = 15 * math.Pi / 180 // rotation in both directions, in radians
	maxShear   = 0.2                // slant in both directions
	minSize    = 17.0               // height of the unit square, in pixels
	maxSize    = 22.0
	maxStretch = 0.2  // deviation of the ratio of width to height from 1
	maxShift   = 2.0  // in both directions, in pixels
	maxWobble  = 0.04 // displacement of each point, in unit squares
	minPen     = 0.8  // half the width of the pen, in pixels
	maxPen     = 1.7
	minInk     = 0.6
	noise      = 0.1 // standard deviation of the noise in each pixel, of 1
	maxSpecks  = 10  // additional bright pixels
)

// A canvas is an image with values from 0 to 1.
type canvas [Pixels]float64

// drawDigit draws a digit with random variation and writes it to out, which has Pixels bytes.
func drawDigit(rng *rand.Rand, digit int, out []byte) {
	var c canvas
	variants := glyphs()[digit]
	place := randomPlace(rng)
	pen := between(rng, minPen, maxPen)
	for _, s := range variants[rng.IntN(len(variants))] {
		prev := place(rng, s[0])
		for _, p := range s[1:] {
			next := place(rng, p)
			c.segment(prev, next, pen)
			prev = next
		}
	}
	c.develop(rng, out)
}

// randomPlace returns a random map from the unit square to pixels. The map displaces each point a
// little.
func randomPlace(rng *rand.Rand) func(*rand.Rand, point) point {
	sin, cos := math.Sincos(between(rng, -maxTurn, maxTurn))
	height := between(rng, minSize, maxSize)
	width := height * between(rng, 1-maxStretch, 1+maxStretch)
	shear := between(rng, -maxShear, maxShear)
	const middle = float64(Side-1) / 2
	dx, dy := between(rng, -maxShift, maxShift), between(rng, -maxShift, maxShift)
	return func(rng *rand.Rand, p point) point {
		x := width * (p.x - 0.5 + between(rng, -maxWobble, maxWobble))
		y := height * (p.y - 0.5 + between(rng, -maxWobble, maxWobble))
		x -= shear * y
		return point{middle + dx + cos*x - sin*y, middle + dy + sin*x + cos*y}
	}
}

// segment draws a straight line with a round pen, with anti-aliasing.
func (c *canvas) segment(a, b point, pen float64) {
	reach := pen + 0.5
	x0, x1 := span(a.x, b.x, reach)
	y0, y1 := span(a.y, b.y, reach)
	for y := y0; y <= y1; y++ {
		for x := x0; x <= x1; x++ {
			cover := reach - distance(point{float64(x), float64(y)}, a, b)
			at := &c[y*Side+x]
			*at = max(*at, min(cover, 1))
		}
	}
}

// span returns the first and last pixel within reach of a line from a to b.
func span(a, b, reach float64) (first, last int) {
	return max(0, int(math.Ceil(min(a, b)-reach))), min(Side-1, int(math.Floor(max(a, b)+reach)))
}

// distance returns the distance of p from the line segment between a and b.
func distance(p, a, b point) float64 {
	dx, dy := b.x-a.x, b.y-a.y
	along := 0.0
	if length := dx*dx + dy*dy; length > 0 {
		along = min(max(((p.x-a.x)*dx+(p.y-a.y)*dy)/length, 0), 1)
	}
	return math.Hypot(p.x-a.x-along*dx, p.y-a.y-along*dy)
}

// develop adds specks and noise, and writes the image as bytes.
func (c *canvas) develop(rng *rand.Rand, out []byte) {
	ink := between(rng, minInk, 1)
	for i := range c {
		c[i] *= ink
	}
	for range rng.IntN(maxSpecks + 1) {
		c[rng.IntN(Pixels)] = between(rng, 0.3, 1)
	}
	for i, v := range c {
		out[i] = byte(255*min(max(v+noise*rng.NormFloat64(), 0), 1) + 0.5)
	}
}

func between(rng *rand.Rand, low, high float64) float64 { return low + (high-low)*rng.Float64() }
