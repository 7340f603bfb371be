package table

import (
	"testing"

	_ "github.com/weft-ml/weft/internal/kernels/data" // tables can be initialized from datasets
	"github.com/weft-ml/weft/internal/test/kerneltest"
)

// TestRecorded compares results with recorded results of TensorFlow.
func TestRecorded(t *testing.T) {
	kerneltest.RunCases(t, "testdata/shapes.txt", "testdata/remapping.txt")
	kerneltest.RunScripts(t, "testdata/table.txt", "testdata/vocabulary.txt", "testdata/dataset.txt")
}
