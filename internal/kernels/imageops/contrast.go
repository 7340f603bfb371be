package imageops

import (
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "AdjustContrast",
			Doc: "Scales the difference of each pixel from the mean of its channel and clips it to min_value and max_value. " +
				"Deprecated, use AdjustContrastv2.",
			In:    []string{"images: T", "contrast_factor: float32", "min_value: float32", "max_value: float32"},
			Out:   []string{"output: float32"},
			Attrs: []string{cropTypes}, Shape: clippedContrastShape,
		},
		Kernels: kernel.ByType("T", kernel.Table{
			tensor.Uint8: kernel.Stateless(clippedContrast[uint8]), tensor.Int8: kernel.Stateless(clippedContrast[int8]),
			tensor.Int16: kernel.Stateless(clippedContrast[int16]), tensor.Int32: kernel.Stateless(clippedContrast[int32]),
			tensor.Float32: kernel.Stateless(clippedContrast[float32]), tensor.Float64: kernel.Stateless(clippedContrast[float64]),
		}),
	})
}

func clippedContrastShape(c *opdef.ShapeContext) error {
	for _, in := range c.In[1:] {
		if _, err := opdef.WithRank(in, 0); err != nil {
			return err
		}
	}
	return imageShape(c)
}

func clippedContrast[T interface {
	tensor.Elem
	elementwise.Integer | elementwise.Float
}](ctx *kernel.Context) error {
	in := ctx.Input(0)
	if in.Rank() < 3 {
		return status.InvalidArgumentf("input must be at least 3-D, got shape%v", in.Shape())
	}
	var args [3]float32
	for i, name := range []string{"contrast_factor", "min_value", "max_value"} {
		arg := ctx.Input(1 + i)
		if arg.Rank() != 0 {
			return status.InvalidArgumentf("%s must be scalar: %v", name, arg.Shape())
		}
		args[i] = tensor.Value[float32](arg)
	}
	factor, least, most := args[0], args[1], args[2]
	out, err := ctx.Allocate(0, in.Shape())
	if err != nil || out.NumElements() == 0 {
		return err
	}
	channels := in.Dim(in.Rank() - 1)
	size := in.Dim(in.Rank()-3) * in.Dim(in.Rank()-2) * channels
	x, z := tensor.Values[T](in), tensor.Values[float32](out)
	for ; len(x) > 0; x, z = x[size:], z[size:] {
		for c := range channels {
			sum := float32(0)
			for i := c; i < size; i += channels {
				sum += float32(x[i])
			}
			mean := sum / float32(size/channels)
			for i := c; i < size; i += channels {
				z[i] = min(max((float32(x[i])-mean)*factor+mean, least), most)
			}
		}
	}
	return nil
}
