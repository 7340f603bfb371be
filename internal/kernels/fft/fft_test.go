package fft

import (
	"testing"

	"github.com/weft-ml/weft/internal/test/kerneltest"
)

// TestRecorded compares kernels and shape functions with recorded results of TensorFlow.
func TestRecorded(t *testing.T) {
	kerneltest.RunCases(t, "testdata/fft.txt", "testdata/audio.txt")
}
