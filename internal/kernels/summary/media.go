package summary

import (
	"math"
	"strconv"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/summary"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterNew(opdef.Def{
		Name: "ImageSummary", Doc: "Creates a summary of the first images of a batch [batch, height, width, channels].",
		In:  []string{"tag: string", "tensor: T"},
		Out: []string{"summary: string"},
		Attrs: []string{
			"max_images: int >= 1 = 3",
			"T: {uint8, float, half, float64} = float",
			"bad_color: tensor = uint8[4]{255, 0, 0, 255}",
		},
		Shape: opdef.ScalarShape,
	}, newImage)
	for name, def := range map[string]opdef.Def{
		"AudioSummary": {
			In: []string{"tag: string", "tensor: float"}, Attrs: []string{"sample_rate: float", "max_outputs: int >= 1 = 3"},
		},
		"AudioSummaryV2": {
			In: []string{"tag: string", "tensor: float", "sample_rate: float"}, Attrs: []string{"max_outputs: int >= 1 = 3"},
		},
	} {
		def.Name, def.Out, def.Shape = name, []string{"summary: string"}, opdef.ScalarShape
		def.Doc = "Creates a summary of the first clips of a batch [batch, frames] or [batch, frames, channels]."
		kernel.RegisterNew(def, newAudio)
	}
}

// numbered returns the tag of item i of at most the given number of items.
func numbered(tag, kind string, i, most int) string {
	if most > 1 {
		return tag + "/" + kind + "/" + strconv.Itoa(i)
	}
	return tag + "/" + kind
}

func newImage(c *kernel.Construction) (kernel.Kernel, error) {
	most, bad := c.Attrs.Int("max_images"), c.Attrs.Tensor("bad_color")
	switch {
	case most > math.MaxInt32:
		return nil, status.InvalidArgumentf("max_images must be < 2^31")
	case bad.DType() != tensor.Uint8:
		return nil, status.InvalidArgumentf("bad_color must be uint8, got %v", bad.DType())
	case bad.Rank() != 1:
		return nil, status.InvalidArgumentf("bad_color must be a vector, got shape %v", bad.Shape())
	}
	color := tensor.Values[uint8](bad)
	return kernel.Func(func(ctx *kernel.Context) error {
		tag, err := scalarTag(ctx, "Tags must be a scalar")
		if err != nil {
			return err
		}
		values, err := imageValues(tag, ctx.Input(1), most, color)
		if err != nil {
			return err
		}
		return result(ctx, values...)
	}), nil
}

// mustTakeItems asks for the memory of the first items of a batch: perElement bytes for each
// element, and for each item a file, its description and a tag. There is any number of items
// without elements.
func mustTakeItems(tag string, t *tensor.Tensor, most, perElement int) {
	if t.Rank() == 0 || t.Dim(0) == 0 {
		return
	}
	const perItem, all = 400, 1 << 60
	n := min(t.Dim(0), most)
	item := perItem + len(tag) + perElement*(t.NumElements()/t.Dim(0))
	if n > all/item {
		panic(&membudget.Exceeded{Bytes: all})
	}
	membudget.MustTake(int64(n) * int64(item))
}

func imageValues(tag string, t *tensor.Tensor, most int, bad []byte) ([]summary.Value, error) {
	// The pixels, which the encoder may hold in another form, and a file that is as long. Its
	// memory grows.
	const perPixel = 5
	mustTakeItems(tag, t, most, perPixel)
	images, err := summary.Images(t, most, bad)
	if err != nil {
		return nil, err
	}
	values := membudget.Make[summary.Value](len(images))
	for i, m := range images {
		values[i] = summary.Value{Tag: numbered(tag, "image", i, most), Data: m}
	}
	return values, nil
}

func newAudio(c *kernel.Construction) (kernel.Kernel, error) {
	most, fixed := c.Attrs.Int("max_outputs"), c.Attrs.Float("sample_rate")
	return kernel.Func(func(ctx *kernel.Context) error {
		tag, err := scalarTag(ctx, "Tag must be a scalar")
		if err != nil {
			return err
		}
		rate := fixed
		if ctx.NumInputs() > 2 {
			if ctx.Input(2).NumElements() != 1 {
				return status.InvalidArgumentf("sample_rate must be rank-0 or contain a single value")
			}
			rate = tensor.Value[float32](ctx.Input(2))
		}
		values, err := audioValues(tag, ctx.Input(1), most, rate)
		if err != nil {
			return err
		}
		return result(ctx, values...)
	}), nil
}

func audioValues(tag string, t *tensor.Tensor, most int, rate float32) ([]summary.Value, error) {
	const perSample = 5 // of a file that grows
	mustTakeItems(tag, t, most, perSample)
	sounds, err := summary.Sounds(t, most, rate)
	if err != nil {
		return nil, err
	}
	values := membudget.Make[summary.Value](len(sounds))
	for i, s := range sounds {
		values[i] = summary.Value{Tag: numbered(tag, "audio", i, most), Data: s}
	}
	return values, nil
}
