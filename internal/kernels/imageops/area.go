package imageops

import (
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
)

func init() {
	kernel.RegisterNew(opdef.Def{
		Name: "ResizeArea", Doc: "Resizes images to size using area interpolation: each output pixel is the mean of the area that it covers.",
		In: []string{"images: T", "size: int32"}, Out: []string{"resized_images: float32"},
		Attrs: []string{anyPixel, "align_corners: bool = false"}, Shape: resizeShape,
	}, resize(area, nil))
}

// span is the part of the input that an output pixel covers: pixels from start on, with their
// weights.
type span struct {
	start   int
	weights []float32
}

func (a axis) spans() []span {
	out := membudget.Make[span](a.out)
	// the weights; two pixels of each may be covered in part
	membudget.MustTake(4 * (int64(a.in) + 2*int64(a.out)))
	for i := range out {
		lo, hi := float32(i)*a.scale, float32(i+1)*a.scale
		start, end := int(floor(lo)), int(ceil(hi))
		s := span{start: start, weights: membudget.Make[float32](max(end-start, 0))}
		for k := range s.weights {
			p := float32(start + k)
			switch {
			case p < lo && p+1 > hi:
				s.weights[k] = a.scale
			case p < lo:
				s.weights[k] = p + 1 - lo
			case p+1 > hi:
				s.weights[k] = hi - p
			default:
				s.weights[k] = 1
			}
		}
		out[i] = s
	}
	return out
}

func area(r *resizing) func(y int, in, out []float32) {
	ys, xs, width, n := r.y.spans(), r.x.spans(), r.inRow(), r.channels
	scale := 1 / (r.y.scale * r.x.scale)
	return func(y int, in, out []float32) {
		for x, sx := range xs {
			for c := range n {
				var sum float32
				for i, wy := range ys[y].weights {
					row := in[r.y.clamp(ys[y].start+i)*width:]
					var part float32
					for j, wx := range sx.weights {
						part += row[r.x.clamp(sx.start+j)*n+c] * wx
					}
					sum += part * wy
				}
				out[x*n+c] = sum * scale
			}
		}
	}
}
