package data

import (
	"testing"

	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// TestFileBufferSizes sets buffer sizes as programs of TensorFlow do. The size for TFRecord files
// may be unspecified.
func TestFileBufferSizes(t *testing.T) {
	for _, c := range []struct {
		op   string
		size int64
		text string
	}{
		{"TFRecordDataset", -1, ""},
		{"TFRecordDataset", 0, ""},
		{"TFRecordDataset", -2, "`buffer_size` must be >= 0 (0 == no buffering)"},
		{"TextLineDataset", -1, "`buffer_size` must be >= 0 (0 == default)"},
	} {
		b := newBench(t)
		_, err := b.run("d", c.op, nil, tensor.Vector[string](), tensor.Scalar(""), num(c.size))
		if c.text == "" && err != nil || c.text != "" && (status.CodeOf(err) != status.InvalidArgument || err.Error() != c.text) {
			t.Errorf("%s with a buffer of %d: %v", c.op, c.size, err)
		}
	}
}
