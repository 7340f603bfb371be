package imageops

import (
	"math"

	"github.com/weft-ml/weft/internal/sys/membudget"
)

// samplingKernel weights a pixel by its distance from the sampling point. The weight is 0 from
// radius on.
type samplingKernel struct {
	radius float32
	weight func(x float32) float32
}

// samplingKernels maps names to the kernels of ScaleAndTranslate. The cubic ones are those of Keys
// (1981) and of Mitchell and Netravali ("Reconstruction Filters in Computer Graphics", 1988).
var samplingKernels = map[string]samplingKernel{
	"lanczos1": lanczos(1), "lanczos3": lanczos(3), "lanczos5": lanczos(5),
	"gaussian": {1.5, func(x float32) float32 {
		const sigma = 0.5
		if x >= 1.5 {
			return 0
		}
		return float32(math.Exp(float64(-x*x) / (2 * sigma * sigma)))
	}},
	"box": {1, func(x float32) float32 {
		switch {
		case x < 0.5:
			return 1
		case x == 0.5:
			return 0.5
		}
		return 0
	}},
	"triangle": {1, func(x float32) float32 { return max(0, 1-x) }},
	"keyscubic": {2, func(x float32) float32 {
		switch {
		case x >= 2:
			return 0
		case x >= 1:
			return ((-0.5*x+2.5)*x-4)*x + 2
		}
		return ((1.5*x-2.5)*x)*x + 1
	}},
	"mitchellcubic": {2, func(x float32) float32 {
		switch {
		case x >= 2:
			return 0
		case x >= 1:
			return (((-7.0/18)*x+2)*x-10.0/3)*x + 16.0/9
		}
		return (((7.0/6)*x-2)*x)*x + 8.0/9
	}},
}

func lanczos(radius float32) samplingKernel {
	return samplingKernel{radius, func(x float32) float32 {
		switch {
		case x > radius:
			return 0
		case x <= 1e-3:
			return 1
		}
		const pi = float32(math.Pi)
		sin := func(x float32) float32 { return float32(math.Sin(float64(x))) }
		return radius * sin(pi*x) * sin(pi*x/radius) / (pi * pi * x * x)
	}}
}

// sample returns the input pixels of each of out output pixels, where an axis of in pixels is
// scaled and then translated.
func (k samplingKernel) sample(in, out int, scale, translate float32, antialias bool) []span {
	inverse := 1 / scale
	width := float32(1)
	if antialias {
		width = max(inverse, 1)
	}
	spans := membudget.Make[span](out)
	var meter membudget.Meter
	for x := range spans {
		at := (float32(x)+0.5)*inverse - inverse*translate
		if at < 0 || at > float32(in) || at != at {
			continue
		}
		lo := min(max(int(ceil(at-k.radius*width-0.5)), 0), in-1)
		hi := min(max(int(floor(at+k.radius*width-0.5)), 0), in-1)
		meter.MustTake(4 * max(hi+1-lo, 0))
		spans[x] = k.span(lo, hi+1, at, width)
	}
	return spans
}

// span weights pixels lo to hi by their distance from a point. The weights have the sum 1 unless
// they are almost 0.
func (k samplingKernel) span(lo, hi int, at, width float32) span {
	s := span{start: lo, weights: membudget.Make[float32](max(hi-lo, 0))}
	var sum float32
	for i := range s.weights {
		distance := (float32(lo+i) + 0.5 - at) * (1 / width)
		s.weights[i] = k.weight(float32(math.Abs(float64(distance))))
		sum += s.weights[i]
	}
	if float32(math.Abs(float64(sum))) < 1000*smallestNormal {
		clear(s.weights)
		return s
	}
	for i := range s.weights {
		s.weights[i] *= 1 / sum
	}
	return s
}

// transposed returns, for each of in pixels, the output pixels that use it.
func transposed(spans []span, in int) []span {
	out := membudget.Make[span](in)
	var meter membudget.Meter
	for x, s := range spans {
		meter.MustTake(8 * len(s.weights)) // in lists that grow
		for j, w := range s.weights {
			if w == 0 {
				continue
			}
			t := &out[s.start+j]
			if len(t.weights) == 0 {
				t.start = x
			}
			for t.start+len(t.weights) <= x {
				t.weights = membudget.Append(t.weights, 0)
			}
			t.weights[x-t.start] += w
		}
	}
	return out
}
