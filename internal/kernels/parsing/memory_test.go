package parsing

import (
	"strings"
	"testing"

	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// Fields and numbers that take a byte or two of text are counted.
func TestMemoryOfText(t *testing.T) {
	kerneltest.WantExhausted(t, 128<<20, "DecodeCSV", opdef.Attrs{"OUT_TYPE": []tensor.DType{tensor.String}},
		tensor.Vector(strings.Repeat(",", 8<<20)), tensor.Scalar("x"))
	numbers := `{"features":{"feature":{"a":{"int64List":{"value":[` + strings.Repeat("1,", 4<<20) + `1]}}}}}`
	kerneltest.WantExhausted(t, 128<<20, "DecodeJSONExample", nil, tensor.Scalar(numbers))
}

// The text that strings share is in a message once for each of them.
func TestMemoryOfSerializedTensor(t *testing.T) {
	kerneltest.WantExhausted(t, 256<<20, "SerializeTensor", opdef.Attrs{"T": tensor.String}, kerneltest.SharedText(1<<20, 1<<10))
}
