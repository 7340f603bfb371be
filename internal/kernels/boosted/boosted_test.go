package boosted

import (
	"testing"

	"github.com/weft-ml/weft/internal/test/kerneltest"
)

// TestRecorded compares operations with recorded answers of TensorFlow.
func TestRecorded(t *testing.T) {
	kerneltest.RunScripts(t, "testdata/1.15.txt", "testdata/2.4.txt")
}
