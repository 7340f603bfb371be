package nn

import (
	"testing"

	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// The beams of a search are counted. The tree keeps all of them, and a step can add as many as the
// beam is wide.
func TestMemoryOfBeams(t *testing.T) {
	const steps, classes = 4, 200
	logits := make([]float32, steps*classes)
	for i := range logits {
		logits[i] = float32(i%classes) / classes
	}
	in, err := tensor.FromSlice(tensor.Shape{steps, 1, classes}, logits)
	if err != nil {
		t.Fatal(err)
	}
	kerneltest.WantExhausted(t, 128<<20, "CTCBeamSearchDecoder",
		opdef.Attrs{"beam_width": int64(10_000_000), "top_paths": int64(1), "merge_repeated": true, "T": tensor.Float32},
		in, tensor.Vector[int32](steps))
}

// A search ends when its step ends.
func TestBeamsEndWithStep(t *testing.T) {
	const steps, classes = 3, 200
	in, err := tensor.Zeros(tensor.Float32, tensor.Shape{steps, 1, classes})
	if err != nil {
		t.Fatal(err)
	}
	kerneltest.WantCancelled(t, "CTCBeamSearchDecoder",
		opdef.Attrs{"beam_width": int64(10_000_000), "top_paths": int64(1), "merge_repeated": true, "T": tensor.Float32},
		in, tensor.Vector[int32](steps))
}
