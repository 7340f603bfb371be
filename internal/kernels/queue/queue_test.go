package queue

import (
	"testing"

	"github.com/weft-ml/weft/internal/test/kerneltest"
)

// TestRecorded compares with what TensorFlow did with the same operations.
func TestRecorded(t *testing.T) {
	kerneltest.RunCases(t, "testdata/shapes.txt")
	kerneltest.RunScripts(t, "testdata/queue.txt", "testdata/accumulator.txt", "testdata/barrier.txt", "testdata/stage.txt")
}
