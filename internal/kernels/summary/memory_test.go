package summary

import (
	"strings"
	"testing"

	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// A value takes two bytes of a serialized summary, and a hundred times as much memory.
func TestMemoryOfValues(t *testing.T) {
	kerneltest.WantExhausted(t, 256<<20, "MergeSummary", opdef.Attrs{"N": int64(1)},
		tensor.Scalar(strings.Repeat("\x0a\x00", 4<<20)))
}

// The text that strings share is in a summary once for each of them.
func TestMemoryOfTensors(t *testing.T) {
	kerneltest.WantExhausted(t, 256<<20, "TensorSummaryV2", opdef.Attrs{"T": tensor.String},
		tensor.Scalar("tag"), kerneltest.SharedText(1<<20, 1<<10), tensor.Scalar(""))
}
