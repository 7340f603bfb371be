package list

import (
	"testing"

	"github.com/weft-ml/weft/internal/kerneltest"
)

// TestRecorded compares with what TensorFlow did with the same operations.
func TestRecorded(t *testing.T) {
	kerneltest.RunCases(t, "testdata/arrayshapes.txt")
	kerneltest.RunScripts(t, "testdata/array.txt", "testdata/stack.txt")
}
