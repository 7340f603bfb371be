package list_test

import (
	"testing"

	"github.com/weft-ml/weft/internal/kerneltest"
	_ "github.com/weft-ml/weft/kernels/array" // lists among other variants
	_ "github.com/weft-ml/weft/kernels/list"
	_ "github.com/weft-ml/weft/kernels/math" // sums of lists
)

// TestRecorded compares with what TensorFlow did with the same operations.
func TestRecorded(t *testing.T) {
	kerneltest.RunCases(t, "testdata/arrayshapes.txt", "testdata/listshapes.txt", "testdata/mapshapes.txt")
	kerneltest.RunScripts(t, "testdata/array.txt", "testdata/stack.txt", "testdata/list.txt", "testdata/tensormap.txt")
}
