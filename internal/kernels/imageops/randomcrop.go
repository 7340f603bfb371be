package imageops

import (
	"slices"

	"github.com/weft-ml/weft/internal/numeric/philox"
	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/opkit/strided"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

const cropTypes = "T: {uint8, int8, int16, int32, int64, float32, float64}"

func init() {
	kernel.RegisterNew(opdef.Def{
		Name: "RandomCrop", Doc: "Crops an image at a random position. Deprecated; graphs use a random Slice instead.",
		In: []string{"image: T", "size: int64"}, Out: []string{"output: T"},
		Attrs: []string{cropTypes, "seed: int = 0", "seed2: int = 0"}, Stateful: true, Shape: randomCropShape,
	}, func(c *kernel.Construction) (kernel.Kernel, error) {
		source := philox.NewSource(c.Attrs.Int("seed"), c.Attrs.Int("seed2"))
		return kernel.Func(func(ctx *kernel.Context) error { return randomCrop(ctx, source) }), nil
	})
}

func randomCropShape(c *opdef.ShapeContext) error {
	image, err := opdef.WithRank(c.In[0], 3)
	if err != nil {
		return err
	}
	size, err := shapefn.Input(c, 1)
	if err != nil {
		return err
	}
	if size, err = opdef.WithRank(size, 2); err != nil {
		return err
	}
	c.Out[0] = shapefn.Of(size.Dim(0), size.Dim(1), image.Dim(2))
	return nil
}

func randomCrop(ctx *kernel.Context, source *philox.Source) error {
	in, size := ctx.Input(0), ctx.Input(1)
	switch {
	case in.Rank() != 3:
		return status.InvalidArgumentf("input must be 3-dimensional%v", in.Shape())
	case size.Rank() != 1:
		return status.InvalidArgumentf("shape_t must be 1-dimensional%v", size.Shape())
	case size.Dim(0) != 2:
		return status.InvalidArgumentf("shape_t must have two elements%v", size.Shape())
	}
	want, have := intarg.Values(size), in.Shape()
	switch {
	case want[0] < 0 || want[1] < 0: // ends the process in TensorFlow
		return status.InvalidArgumentf("size must not be negative, got %v", want)
	case want[0] == have[0] && want[1] == have[1]:
		return ctx.PassInput(0, 0)
	case have[0] < want[0]:
		return status.FailedPreconditionf("height must be >= target_height: height = %d, target_height = %d", have[0], want[0])
	case have[1] < want[1]:
		return status.FailedPreconditionf("width must be >= target_width: width = %d, target_width = %d", have[1], want[1])
	}
	words := philox.NewWords(source.TakeWords(2))
	var at [2]int64
	for i := range slices.Backward(at[:]) { // TensorFlow draws the column first
		if have[i] > want[i] {
			at[i] = int64(words.Next()) % (have[i] - want[i] + 1)
		}
	}
	out, err := ctx.Allocate(0, tensor.Shape{want[0], want[1], have[2]})
	if err != nil || out.NumElements() == 0 {
		return err
	}
	from := strided.Of(out.Shape())
	width := int(have[1] * have[2])
	from.Strides[0], from.Offset = width, int(at[0])*width+int(at[1]*have[2])
	strided.Copy(out, strided.Of(out.Shape()), in, from)
	return nil
}
