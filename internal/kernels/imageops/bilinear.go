package imageops

import (
	"github.com/weft-ml/weft/internal/numeric/simd"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
)

func init() {
	attrs := []string{"align_corners: bool = false", "half_pixel_centers: bool = false"}
	kernel.RegisterNew(opdef.Def{
		Name: "ResizeBilinear", Doc: "Resizes images to size using bilinear interpolation.",
		In: []string{"images: T", "size: int32"}, Out: []string{"resized_images: float32"}, Shape: resizeShape,
		Attrs: append([]string{
			"T: {int8, uint8, int16, uint16, int32, int64, bfloat16, float16, float32, float64, bfloat16}",
		}, attrs...),
	}, resize(bilinear, (*resizing).bilinearOnDevice))
	kernel.RegisterNew(opdef.Def{
		Name: "ResizeBilinearGrad", Doc: "Computes the gradient of ResizeBilinear.",
		In: []string{"grads: float32", "original_image: T"}, Out: []string{"output: T"},
		Attrs: append([]string{"T: {float32, bfloat16, float16, float64}"}, attrs...), Shape: secondShape,
	}, resizeGradient(gradientFuncs{addBilinear[float32], addBilinear[float64], (*resizing).bilinearGradOnDevice}))
}

// between is a position between two pixels. lerp is the weight of the upper one.
type between struct {
	lower, upper int
	lerp         float32
}

func (a axis) between() []between {
	out := membudget.Make[between](a.out)
	for i := range out {
		p := a.at(i)
		low := floor(p)
		out[i] = between{lower: a.clamp(int(low)), upper: min(int(ceil(p)), a.in-1), lerp: p - low}
	}
	return out
}

func bilinear(r *resizing) func(y int, in, out []float32) {
	width, n := r.inRow(), r.channels
	if r.y.in == r.y.out && r.x.in == r.x.out {
		return func(y int, in, out []float32) { copy(out, in[y*width:]) }
	}
	ys, xs := r.y.between(), membudget.Make[simd.Between](r.x.out)
	for i, p := range r.x.between() {
		xs[i] = simd.Between{Lower: p.lower * n, Upper: p.upper * n, Share: p.lerp}
	}
	var idle blenders
	return func(y int, in, out []float32) {
		b := idle.get()
		b.places, b.channels = xs, n
		b.blend(out, in[ys[y].lower*width:][:width], in[ys[y].upper*width:][:width], ys[y].lerp)
		idle.put(b)
	}
}

func addBilinear[T float32 | float64](r *resizing, original []T, resized []float32) {
	ys, xs, width, n := r.y.between(), r.x.between(), r.inRow(), r.channels
	for y, py := range ys {
		top, bottom, up := original[py.lower*width:], original[py.upper*width:], 1-py.lerp
		for x, px := range xs {
			left, right, back := px.lower*n, px.upper*n, 1-px.lerp
			for c, g := range resized[(y*r.x.out+x)*n:][:n] {
				top[left+c] += T(g * up * back)
				top[right+c] += T(g * up * px.lerp)
				bottom[left+c] += T(g * py.lerp * back)
				bottom[right+c] += T(g * py.lerp * px.lerp)
			}
		}
	}
}
