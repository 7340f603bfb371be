package ioops

import (
	"testing"

	_ "github.com/weft-ml/weft/internal/kernels/queue" // readers take file names from queues
	"github.com/weft-ml/weft/internal/test/kerneltest"
)

// TestRecorded compares results with recorded results of TensorFlow.
func TestRecorded(t *testing.T) {
	kerneltest.RunCases(t, "testdata/readershapes.txt", "testdata/remap.txt", "testdata/sharded.txt")
	kerneltest.RunScripts(t, "testdata/reader.txt")
}
