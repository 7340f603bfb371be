package listops_test

import (
	"testing"

	_ "github.com/weft-ml/weft/internal/kernels/array" // operations on variants
	_ "github.com/weft-ml/weft/internal/kernels/listops"
	_ "github.com/weft-ml/weft/internal/kernels/mathops" // AddN of lists
	"github.com/weft-ml/weft/internal/test/kerneltest"
)

// TestRecorded compares with TensorFlow's recorded results for the same operations.
func TestRecorded(t *testing.T) {
	kerneltest.RunCases(t, "testdata/arrayshapes.txt", "testdata/listshapes.txt", "testdata/mapshapes.txt")
	kerneltest.RunScripts(t, "testdata/array.txt", "testdata/stack.txt", "testdata/list.txt", "testdata/tensormap.txt")
}
