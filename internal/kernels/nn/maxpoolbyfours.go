package nn

import (
	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// vectFormat is the format of images whose channels are in groups of four: images, groups, rows,
// columns and the channels of a group.
const vectFormat = "NCHW_VECT_C"

// byFours is a kernel for qint8, which TensorFlow pools on GPUs only, and in vectFormat only.
func byFours(n kernel.New) kernel.Impl {
	return kernel.Impl{Device: kernel.Host, Types: []kernel.Constraint{kernel.OfType("T", tensor.QInt8)}, New: n}
}

func newPoolByFours(c *kernel.Construction) (kernel.Kernel, error) {
	p, err := poolingByFours(c.Attrs, c.Attrs.Ints("ksize"), c.Attrs.Ints("strides"))
	if err != nil {
		return nil, err
	}
	return kernel.Func(func(ctx *kernel.Context) error { return poolByFours(ctx, &p) }), nil
}

// newPoolByFoursV2 takes the window from inputs.
func newPoolByFoursV2(c *kernel.Construction) (kernel.Kernel, error) {
	return kernel.Func(func(ctx *kernel.Context) error {
		p, err := poolingByFours(c.Attrs, intarg.Values(ctx.Input(1)), intarg.Values(ctx.Input(2)))
		if err != nil {
			return err
		}
		return poolByFours(ctx, &p)
	}), nil
}

// poolingByFours returns the pooling with channels last of images that are groups of channels.
func poolingByFours(attrs opdef.Attrs, ksize, strides []int64) (pooling, error) {
	if attrs.String("data_format") != vectFormat {
		return pooling{}, status.InvalidArgumentf("qint8 should be used with data_format NCHW_VECT_C.")
	}
	if err := checkWindow(ksize); err != nil {
		return pooling{}, err
	}
	p, err := newPooling(axes{spatial: 2}, channelsLast(ksize), channelsLast(strides), attrs.String("padding"),
		channelsLast(attrs.Ints("explicit_paddings")), "stride")
	if err == nil {
		err = p.noDepth()
	}
	return p, err
}

// channelsLast moves the second quarter of v, which belongs to the channels, to the end.
func channelsLast(v []int64) []int64 {
	n := len(v) / 4
	if n == 0 || len(v)%4 != 0 {
		return v
	}
	out := append([]int64{}, v[:n]...)
	out = append(out, v[2*n:]...)
	return append(out, v[n:2*n]...)
}

func poolByFours(ctx *kernel.Context, p *pooling) error {
	in := ctx.Input(0)
	s := in.Shape()
	if in.Rank() != 5 || s[4] != 4 {
		return status.InvalidArgumentf("input must have 5 dimensions in data_format NCHW_VECT_C, the last of size 4, got shape%v", s)
	}
	x, err := in.WithShape(tensor.Shape{s[0] * s[1], s[2], s[3], 4})
	if err != nil {
		return err
	}
	g, err := p.size(x.Shape())
	if err != nil {
		return err
	}
	pooled := p.shapeOf(&g)
	out, err := ctx.Allocate(0, tensor.Shape{s[0], s[1], pooled[1], pooled[2], 4})
	if err != nil || out.NumElements() == 0 {
		return err
	}
	g.step = ctx.Context()
	intMaxPool(p, &g, tensor.Values[tensor.QInt8Elem](out), tensor.Values[tensor.QInt8Elem](in))
	return g.step.Err()
}
