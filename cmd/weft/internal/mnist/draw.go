package mnist

import (
	"math"
	"math/rand/v2"
)

// How much one writer's digits differ from another's. As with MNIST itself, a network with one
// hidden layer of 100 units reaches about 98 % on them and a linear model some percent less.
const (
	maxTurn    = 15 * math.Pi / 180 // rotation either way
	maxShear   = 0.2                // slant either way
	minSize    = 17.0               // height of the unit square, in pixels
	maxSize    = 22.0
	maxStretch = 0.2  // width against height either way
	maxShift   = 2.0  // pixels either way
	maxWobble  = 0.04 // of each point of a stroke
	minPen     = 0.8  // half the width of the pen, in pixels
	maxPen     = 1.7
	minInk     = 0.6
	noise      = 0.1 // standard deviation of what is added to each pixel, of 1
	maxSpecks  = 10  // bright pixels that belong to no digit
)

// A canvas is an image while it is drawn, 0 to 1 per pixel.
type canvas [Pixels]float64

// drawDigit draws one digit as one writer would, and writes it to the Pixels bytes of out.
func drawDigit(rng *rand.Rand, digit int, out []byte) {
	var c canvas
	ways := glyphs[digit]
	place := randomPlace(rng)
	pen := between(rng, minPen, maxPen)
	for _, s := range ways[rng.IntN(len(ways))] {
		prev := place(rng, s[0])
		for _, p := range s[1:] {
			next := place(rng, p)
			c.segment(prev, next, pen)
			prev = next
		}
	}
	c.develop(rng, out)
}

// randomPlace chooses where and how a digit is written: a map from the unit square to pixels that
// wobbles a little at each point.
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

// segment draws a straight line with a round pen. A pixel at the edge is covered in part.
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

// span returns the first and last pixel that a line from a to b can touch within reach.
func span(a, b, reach float64) (first, last int) {
	return max(0, int(math.Ceil(min(a, b)-reach))), min(Side-1, int(math.Floor(max(a, b)+reach)))
}

// distance returns how far p is from the line between a and b.
func distance(p, a, b point) float64 {
	dx, dy := b.x-a.x, b.y-a.y
	along := 0.0
	if length := dx*dx + dy*dy; length > 0 {
		along = min(max(((p.x-a.x)*dx+(p.y-a.y)*dy)/length, 0), 1)
	}
	return math.Hypot(p.x-a.x-along*dx, p.y-a.y-along*dy)
}

// develop adds specks and noise and writes the image as bytes.
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
