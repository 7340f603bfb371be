package ioops

import (
	"testing"

	_ "github.com/weft-ml/weft/internal/kernels/queue" // readers take names of files from queues
	"github.com/weft-ml/weft/internal/test/kerneltest"
)

// TestRecorded compares with what TensorFlow did with the same operations.
func TestRecorded(t *testing.T) {
	kerneltest.RunCases(t, "testdata/readershapes.txt", "testdata/remap.txt", "testdata/sharded.txt")
	kerneltest.RunScripts(t, "testdata/reader.txt")
}
