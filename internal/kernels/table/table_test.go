package table

import (
	"testing"

	_ "github.com/weft-ml/weft/internal/kernels/data" // tables can be filled from datasets
	"github.com/weft-ml/weft/internal/test/kerneltest"
)

// TestRecorded compares with what TensorFlow did with the same operations.
func TestRecorded(t *testing.T) {
	kerneltest.RunCases(t, "testdata/shapes.txt", "testdata/remapping.txt")
	kerneltest.RunScripts(t, "testdata/table.txt", "testdata/vocabulary.txt", "testdata/dataset.txt")
}
