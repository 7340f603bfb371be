package imageops

import (
	"math"

	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	attrs := []string{"kernel_type: string = 'lanczos3'", "antialias: bool = true"}
	kernel.RegisterNew(opdef.Def{
		Name: "ScaleAndTranslate", Doc: "Scales and translates images, resampling them with a kernel of the given type.",
		In:  []string{"images: T", "size: int32", "scale: float32", "translation: float32"},
		Out: []string{"resized_images: float32"},
		Attrs: append([]string{
			"T: {int8, uint8, int16, uint16, int32, int64, bfloat16, float16, float32, float64}",
		}, attrs...),
		Shape: resizeShape,
	}, newSampling(scaleAndTranslate))
	kernel.RegisterNew(opdef.Def{
		Name: "ScaleAndTranslateGrad", Doc: "Computes the gradient of ScaleAndTranslate.",
		In:  []string{"grads: T", "original_image: T", "scale: float32", "translation: float32"},
		Out: []string{"output: T"}, Attrs: append([]string{"T: {float32}"}, attrs...), Shape: secondShape,
	}, newSampling(scaleAndTranslateGrad))
}

// sampler is the kernel of ScaleAndTranslate and of its gradient.
type sampler struct {
	kernel    samplingKernel
	antialias bool
}

func newSampling(compute func(s *sampler, ctx *kernel.Context) error) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		name := c.Attrs.String("kernel_type")
		k, ok := samplingKernels[name]
		if !ok {
			return nil, status.InvalidArgumentf("Unrecognized kernel type: %s", name)
		}
		s := &sampler{kernel: k, antialias: c.Attrs.Bool("antialias")}
		return kernel.Func(func(ctx *kernel.Context) error { return compute(s, ctx) }), nil
	}
}

// spans samples rows and columns as the inputs scale and translation specify.
func (s *sampler) spans(ctx *kernel.Context, inHeight, inWidth, outHeight, outWidth int) (rows, columns []span, err error) {
	scale, err := pair(ctx.Input(2))
	if err != nil {
		return nil, nil, err
	}
	if !(scale[0] > 0 && scale[1] > 0) {
		return nil, nil, status.InvalidArgumentf("Scale must be greater than zero.")
	}
	move, err := pair(ctx.Input(3))
	if err != nil {
		return nil, nil, err
	}
	rows = s.kernel.sample(inHeight, outHeight, scale[0], move[0], s.antialias)
	columns = s.kernel.sample(inWidth, outWidth, scale[1], move[1], s.antialias)
	return rows, columns, nil
}

func pair(t *tensor.Tensor) ([]float32, error) {
	switch {
	case t.Rank() != 1:
		return nil, status.InvalidArgumentf("t must be 1-dimensional%v", t.Shape())
	case t.NumElements() != 2:
		return nil, status.InvalidArgumentf("t must have two elements%v", t.Shape())
	}
	return tensor.Values[float32](t), nil
}

func checkSampling(in, size *tensor.Tensor) error {
	switch {
	case in.Rank() != 4:
		return status.InvalidArgumentf("input must be 4-dimensional%v", in.Shape())
	case size.Rank() != 1:
		return status.InvalidArgumentf("output_shape_t must be 1-dimensional%v", size.Shape())
	case size.NumElements() != 2:
		return status.InvalidArgumentf("output_shape_t must have two elements%v", size.Shape())
	case in.Dim(1) >= math.MaxInt32 || in.Dim(2) >= math.MaxInt32:
		return status.InvalidArgumentf("input sizes must be between 0 and max int32")
	}
	v := tensor.Values[int32](size)
	switch {
	case v[0] <= 0 || v[1] <= 0:
		return status.InvalidArgumentf("output dimensions must be positive")
	case in.Dim(3) <= 0:
		return status.InvalidArgumentf("image must have at least one channel")
	case in.Dim(1) <= 0 || in.Dim(2) <= 0:
		return status.InvalidArgumentf("input image must be of non-zero size")
	}
	return nil
}

func scaleAndTranslate(s *sampler, ctx *kernel.Context) error {
	in, size := ctx.Input(0), ctx.Input(1)
	if err := checkSampling(in, size); err != nil {
		return err
	}
	v := tensor.Values[int32](size)
	out, err := ctx.Allocate(0, tensor.Shape{int64(in.Dim(0)), int64(v[0]), int64(v[1]), int64(in.Dim(3))})
	if err != nil {
		return err
	}
	rows, columns, err := s.spans(ctx, in.Dim(1), in.Dim(2), int(v[0]), int(v[1]))
	if err != nil {
		return err
	}
	gather(tensor.Values[float32](out), pixels(in), rows, columns, in.Dim(1), in.Dim(2), in.Dim(3))
	return nil
}

func scaleAndTranslateGrad(s *sampler, ctx *kernel.Context) error {
	grads, original := ctx.Input(0), ctx.Input(1)
	switch {
	case grads.Rank() != 4:
		return status.InvalidArgumentf("input_grad must be 4-dimensional%v", grads.Shape())
	case original.Rank() != 4:
		return status.InvalidArgumentf("original_image must be 4-dimensional%v", original.Shape())
	case original.Dim(1) >= math.MaxInt32 || original.Dim(2) >= math.MaxInt32:
		return status.InvalidArgumentf("original sizes must be between 0 and max int32")
	}
	height, width := original.Dim(1), original.Dim(2)
	out, err := ctx.Allocate(0, tensor.Shape{int64(grads.Dim(0)), int64(height), int64(width), int64(grads.Dim(3))})
	if err != nil {
		return err
	}
	rows, columns, err := s.spans(ctx, height, width, grads.Dim(1), grads.Dim(2))
	if err != nil || out.NumElements() == 0 {
		return err
	}
	gather(tensor.Values[float32](out), tensor.Values[float32](grads), transposed(rows, height), transposed(columns, width),
		grads.Dim(1), grads.Dim(2), grads.Dim(3))
	return nil
}

// gather computes each output pixel from the input rows and columns of its spans. in holds images
// of the given height, width and channels.
func gather(out, in []float32, rows, columns []span, height, width, channels int) {
	rowLen, outLen := width*channels, len(columns)*channels
	parallel.For(len(out)/max(outLen, 1), 1, func(lo, hi int) {
		mixed := membudget.Make[float32](rowLen)
		for i := lo; i < hi; i++ {
			clear(mixed)
			image := in[i/len(rows)*height*rowLen:]
			row := rows[i%len(rows)]
			for k, w := range row.weights {
				for j, v := range image[(row.start+k)*rowLen:][:rowLen] {
					mixed[j] += w * v
				}
			}
			gatherColumns(out[i*outLen:(i+1)*outLen], mixed, columns, channels)
		}
	})
}

func gatherColumns(out, row []float32, columns []span, channels int) {
	clear(out)
	for x, s := range columns {
		to := out[x*channels : (x+1)*channels]
		for k, w := range s.weights {
			for c, v := range row[(s.start+k)*channels:][:channels] {
				to[c] += w * v
			}
		}
	}
}
