package table

import (
	"testing"

	"github.com/weft-ml/weft/internal/kerneltest"
)

// TestRecorded compares with what TensorFlow did with the same operations.
func TestRecorded(t *testing.T) {
	kerneltest.RunCases(t, "testdata/shapes.txt", "testdata/remapping.txt")
	kerneltest.RunScripts(t, "testdata/table.txt", "testdata/vocabulary.txt")
}
