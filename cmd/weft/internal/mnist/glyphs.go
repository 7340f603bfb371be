package mnist

import (
	"math"
	"sync"
)

// A point is a point in the unit square, x to the right and y down.
type point struct{ x, y float64 }

// A stroke is a connected path.
type stroke []point

// glyphs returns the variants of each digit.
var glyphs = sync.OnceValue(func() *[Classes][][]stroke {
	return &[Classes][][]stroke{
		0: {{arc(.5, .5, .29, .41, -90, 270)}},
		1: {
			{line(.36, .26, .54, .09, .5, .91)},
			{line(.34, .26, .52, .09, .52, .9), line(.32, .91, .7, .91)},
		},
		2: {{join(arc(.49, .31, .26, .22, 195, 395), line(.24, .9, .79, .89))}},
		3: {
			{join(arc(.46, .29, .26, .2, 200, 440), arc(.46, .69, .29, .22, 280, 515))},
			{join(line(.24, .1, .74, .1, .47, .44), arc(.46, .67, .29, .23, 280, 515))},
		},
		4: {
			{line(.6, .08, .2, .62, .84, .62), line(.61, .3, .6, .93)},
			{line(.28, .1, .24, .5, .76, .5), line(.74, .1, .7, .92)},
		},
		5: {{join(line(.74, .1, .34, .1, .3, .44), arc(.47, .65, .28, .25, 235, 510))}},
		6: {{join(line(.68, .09, .42, .28), arc(.5, .66, .25, .24, 190, 560))}},
		7: {
			{line(.21, .11, .79, .11, .41, .92)},
			{line(.21, .11, .79, .11, .41, .92), line(.36, .5, .72, .5)},
		},
		8: {{arc(.5, .29, .21, .19, 90, 450), arc(.5, .7, .26, .21, -90, 270)}},
		9: {{join(arc(.5, .33, .24, .23, 0, 370), line(.72, .5, .62, .92))}},
	}
})

// line returns the path through the points (x0, y0), (x1, y1) ….
func line(xy ...float64) stroke {
	s := make(stroke, 0, len(xy)/2)
	for i := 0; i < len(xy); i += 2 {
		s = append(s, point{xy[i], xy[i+1]})
	}
	return s
}

// arc returns a part of an ellipse, clockwise between two angles in degrees from the x axis.
func arc(cx, cy, rx, ry, from, to float64) stroke {
	const step = 30
	n := int(math.Ceil((to - from) / step))
	s := make(stroke, 0, n+1)
	for i := range n + 1 {
		sin, cos := math.Sincos((from + (to-from)*float64(i)/float64(n)) * math.Pi / 180)
		s = append(s, point{cx + rx*cos, cy + ry*sin})
	}
	return s
}

// join concatenates paths.
func join(paths ...stroke) stroke {
	var s stroke
	for _, p := range paths {
		s = append(s, p...)
	}
	return s
}
