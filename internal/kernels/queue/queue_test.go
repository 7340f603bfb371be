package queue

import (
	"testing"

	"github.com/weft-ml/weft/internal/test/kerneltest"
)

// TestRecorded compares results with recorded results of TensorFlow.
func TestRecorded(t *testing.T) {
	kerneltest.RunCases(t, "testdata/shapes.txt")
	kerneltest.RunScripts(t, "testdata/queue.txt", "testdata/accumulator.txt", "testdata/barrier.txt", "testdata/stage.txt")
}
