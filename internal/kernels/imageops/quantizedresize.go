package imageops

import (
	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/opkit/quantize"
	"github.com/weft-ml/weft/internal/sys/bulk"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "QuantizedResizeBilinear",
			Doc:  "Resizes quantized images to size using quantized bilinear interpolation.",
			In:   []string{"images: T", "size: int32", "min: float32", "max: float32"},
			Out:  []string{"resized_images: T", "out_min: float32", "out_max: float32"},
			Attrs: []string{
				"T: {quint8, qint32, float32}", "align_corners: bool = false", "half_pixel_centers: bool = false",
			},
			Shape: quantize.Shape(resizeShape, 2),
		},
		Kernels: kernel.ByType("T", kernel.Table{
			tensor.QUint8:  newQuantizedResize(interpolated[tensor.QUint8Elem](7)),
			tensor.QInt32:  newQuantizedResize(interpolated[tensor.QInt32Elem](30)),
			tensor.Float32: newQuantizedResize(interpolatedFloats),
		}),
	})
}

// newQuantizedResize returns the constructor of a kernel that interpolates with f.
func newQuantizedResize(f func(r *resizing, in, out *tensor.Tensor)) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		a := alignmentOf(c.Attrs)
		return kernel.Func(func(ctx *kernel.Context) error {
			for i, name := range []string{"min", "max"} {
				if ctx.Input(2+i).Rank() != 0 {
					return status.InvalidArgumentf("%s must be a scalar", name)
				}
			}
			r, err := newResizing(ctx, alignment{corners: a.corners})
			if err != nil {
				return err
			}
			r.y.centers, r.x.centers = a.centers, a.centers
			out, err := ctx.Allocate(0, r.outShape())
			if err != nil {
				return err
			}
			if in := ctx.Input(0); r.y.in == r.y.out && r.x.in == r.x.out {
				bulk.Copy(out.Bytes(), in.Bytes())
			} else {
				f(r, in, out)
			}
			quantize.SetRange(ctx, 1, quantize.Range{Min: tensor.Value[float32](ctx.Input(2)), Max: tensor.Value[float32](ctx.Input(3))})
			return nil
		}), nil
	}
}

func interpolatedFloats(r *resizing, in, out *tensor.Tensor) {
	r.rows(tensor.Values[float32](in), tensor.Values[float32](out), bilinear(r))
}

// interpolated returns a function that interpolates integers in fixed-point arithmetic. Weights
// have the given number of bits.
func interpolated[T tensor.QUint8Elem | tensor.QInt32Elem](bits int) func(r *resizing, in, out *tensor.Tensor) {
	one := 1 << bits
	mix := func(a, b T, share int) int {
		left, right := int(float32(a)), int(float32(b)) // rounded as in TensorFlow
		return left*one + (right-left)*share
	}
	return func(r *resizing, in, out *tensor.Tensor) {
		ys, xs := r.y.fixed(bits), r.x.fixed(bits)
		x, z, n, image, width := tensor.Values[T](in), tensor.Values[T](out), r.channels, r.y.in*r.inRow(), r.outRow()
		parallel.For(r.batch*r.y.out, max(1, 1<<14/max(width, 1)), func(lo, hi int) {
			for i := lo; i < hi; i++ {
				from, to, py := x[i/r.y.out*image:], z[i*width:], ys[i%r.y.out]
				top, bottom := from[py.lower*r.inRow():], from[py.upper*r.inRow():]
				for j, px := range xs {
					left, right := px.lower*n, px.upper*n
					for c := range n {
						up, down := mix(top[left+c], top[right+c], px.share), mix(bottom[left+c], bottom[right+c], px.share)
						to[j*n+c] = T((up + (down-up)/one*py.share + one/2) / one)
					}
				}
			}
		})
	}
}

// betweenFixed is a position between two pixels. share is the weight of the upper one, in fixed
// point.
type betweenFixed struct{ lower, upper, share int }

func (a axis) fixed(bits int) []betweenFixed {
	out := membudget.Make[betweenFixed](a.out)
	for i := range out {
		p := a.at(i)
		low, upper := floor(p), min(int(ceil(p)), a.in-1)
		out[i] = betweenFixed{lower: min(max(int(low), 0), upper), upper: upper, share: int((p - low) * float32(int(1)<<bits))}
	}
	return out
}
