package summary

import (
	"strings"
	"testing"

	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// Items of a batch take memory besides their elements: small images, sounds without samples, and
// long tags.
func TestMemoryOfItems(t *testing.T) {
	const limit, most = 128 << 20, 1<<31 - 1
	short := tensor.Scalar("tag")
	for _, n := range []int64{1 << 20, 1 << 58} {
		silence, err := tensor.FromSlice(tensor.Shape{n, 0}, []float32{})
		if err != nil {
			t.Fatal(err)
		}
		kerneltest.WantExhausted(t, limit, "AudioSummary", opdef.Attrs{"sample_rate": float32(1), "max_outputs": int64(1 << 62)}, short, silence)
	}
	pixels := func(n int64) tensor.Tensor {
		out, err := tensor.FromSlice(tensor.Shape{n, 1, 1, 1}, make([]uint8, n))
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	attrs := opdef.Attrs{"T": tensor.Uint8, "max_images": int64(most)}
	kerneltest.WantExhausted(t, limit, "ImageSummary", attrs, short, pixels(1<<19))
	kerneltest.WantExhausted(t, limit, "ImageSummary", attrs, tensor.Scalar(strings.Repeat("x", 1<<20)), pixels(200))
}
