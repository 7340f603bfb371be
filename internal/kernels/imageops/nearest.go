package imageops

import (
	"github.com/weft-ml/weft/internal/gpu/device"
	gpusource "github.com/weft-ml/weft/internal/gpu/source"
	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	attrs := []string{anyPixel, "align_corners: bool = false", "half_pixel_centers: bool = false"}
	kernel.RegisterNew(opdef.Def{
		Name: "ResizeNearestNeighbor", Doc: "Resizes images to size using nearest neighbor interpolation.",
		In: []string{"images: T", "size: int32"}, Out: []string{"resized_images: T"}, Attrs: attrs, Shape: resizeShape,
	}, newNearest)
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "ResizeNearestNeighborGrad", Doc: "Computes the gradient of ResizeNearestNeighbor. size is the size of the original images.",
			In: []string{"grads: T", "size: int32"}, Out: []string{"output: T"},
			Attrs: append([]string{"T: {uint8, int8, int32, float16, float32, float64, bfloat16}"}, attrs[1:]...),
			Shape: resizeShape,
		},
		Kernels: kernel.ByType("T", kernel.Table{
			tensor.Uint8: newNearestGrad(addTo[uint8]), tensor.Int8: newNearestGrad(addTo[int8]),
			tensor.Int32: newNearestGrad(addTo[int32]), tensor.Float32: newNearestGrad(addTo[float32]),
			tensor.Float64: newNearestGrad(addTo[float64]), tensor.Float16: newNearestGrad(elementwise.Arithmetic[tensor.Float16Elem](elementwise.Add)),
			tensor.BFloat16: newNearestGrad(elementwise.Arithmetic[tensor.BFloat16Elem](elementwise.Add)),
		}),
	})
}

func addTo[T number](z, x, y []T) {
	for i := range z {
		z[i] = x[i] + y[i]
	}
}

// nearest returns the index of the input pixel of each output pixel.
func (a axis) nearest(corners bool) []int {
	at := membudget.Make[int](a.out)
	for i := range at {
		p := float32(i) * a.scale
		if a.centers {
			p = (float32(i) + 0.5) * a.scale
		}
		if corners {
			p = round(p)
		}
		at[i] = a.clamp(int(floor(p)))
	}
	return at
}

func newNearest(c *kernel.Construction) (kernel.Kernel, error) {
	a := alignmentOf(c.Attrs)
	return kernel.Func(func(ctx *kernel.Context) error {
		r, err := newResizing(ctx, a)
		if err != nil {
			return err
		}
		if r.y.in >= 1<<24 || r.x.in >= 1<<24 {
			return status.InvalidArgumentf("nearest neighbor requires max height & width of 2^24")
		}
		out, err := ctx.Allocate(0, r.outShape())
		if err != nil {
			return err
		}
		if d := device.Of(out); d != nil {
			return r.nearestOnDevice(d, "nearest_"+gpusource.SizeName(out.DType().Size()), out, ctx.Input(0), a)
		}
		size := out.DType().Size() * r.channels
		src, dst, xs, ys := ctx.Input(0).Bytes(), out.Bytes(), r.x.nearest(a.corners), r.y.nearest(a.corners)
		parallel.For(r.batch*r.y.out, max(1, 1<<15/(size*r.x.out)), func(lo, hi int) {
			for i := lo; i < hi; i++ {
				row := src[(i/r.y.out*r.y.in+ys[i%r.y.out])*r.x.in*size:]
				to := dst[i*r.x.out*size:]
				for x, at := range xs {
					copy(to[x*size:(x+1)*size], row[at*size:])
				}
			}
		})
		return nil
	}), nil
}

func newNearestGrad[T tensor.Elem](add func(z, x, y []T)) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		a := alignmentOf(c.Attrs)
		return kernel.Func(func(ctx *kernel.Context) error { return nearestGrad(ctx, a, add) }), nil
	}
}

func nearestGrad[T tensor.Elem](ctx *kernel.Context, a alignment, add func(z, x, y []T)) error {
	grads := ctx.Input(0)
	if grads.Rank() != 4 {
		return status.InvalidArgumentf("input must be 4-dimensional%v", grads.Shape())
	}
	height, width, err := sizeInput(ctx.Input(1))
	if err != nil {
		return err
	}
	if height <= 0 || width <= 0 {
		return status.InvalidArgumentf("shape_t's elements must be positive")
	}
	r := &resizing{
		batch: grads.Dim(0), channels: grads.Dim(3), y: a.axis(height, grads.Dim(1)), x: a.axis(width, grads.Dim(2)),
	}
	out, err := ctx.AllocateZeros(0, r.inShape())
	if err != nil || out.NumElements() == 0 {
		return err
	}
	if d := device.Of(out); d != nil {
		return r.nearestOnDevice(d, "nearestgrad_"+gpusource.TypeName(out.DType()), out, grads, a)
	}
	src, dst, n := tensor.Values[T](grads), tensor.Values[T](out), r.channels
	xs, ys := r.x.nearest(a.corners), r.y.nearest(a.corners)
	parallel.For(r.batch, 1, func(lo, hi int) {
		for row := lo * r.y.out; row < hi*r.y.out; row++ {
			base := (row/r.y.out*r.y.in + ys[row%r.y.out]) * r.x.in
			for x, at := range xs {
				to, from := dst[(base+at)*n:], (row*r.x.out+x)*n
				add(to[:n], to[:n], src[from:from+n])
			}
		}
	})
	return nil
}
