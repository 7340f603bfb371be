package ragged

import (
	"testing"

	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// An error does not print the bytes of a value that is not the expected one.
func TestTextOfOtherVariants(t *testing.T) {
	other := tensor.EncodedVariant{TypeName: "other", Metadata: make([]byte, 1<<20)}
	attrs := opdef.Attrs{"input_ragged_rank": int64(1), "output_ragged_rank": int64(1), "Tvalues": tensor.Int32, "Tsplits": tensor.Int64}
	_, err := kerneltest.Try("RaggedTensorFromVariant", attrs, tensor.Scalar(tensor.VariantValue{Value: other}))
	if err == nil || len(err.Error()) > 1000 {
		t.Errorf("want a short error")
	}
}
