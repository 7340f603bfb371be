package ragged

import (
	"testing"

	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// Rows without elements take memory once each of them is a variant.
func TestMemoryOfRows(t *testing.T) {
	values, err := tensor.FromSlice(tensor.Shape{2 << 20, 0}, []float32{})
	if err != nil {
		t.Fatal(err)
	}
	kerneltest.WantExhausted(t, 128<<20, "RaggedTensorToVariant",
		opdef.Attrs{"RAGGED_RANK": int64(0), "Tvalues": tensor.Float32, "Tsplits": tensor.Int64, "batched_input": true}, values)
}
