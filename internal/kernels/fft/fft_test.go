package fft

import (
	"testing"

	"github.com/weft-ml/weft/internal/test/kerneltest"
)

// TestRecorded compares kernels and shape rules with what TensorFlow computed for the same inputs.
func TestRecorded(t *testing.T) {
	kerneltest.RunCases(t, "testdata/fft.txt", "testdata/audio.txt")
}
