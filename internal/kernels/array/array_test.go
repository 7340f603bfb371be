package array

import (
	"path/filepath"
	"testing"

	"github.com/weft-ml/weft/internal/test/kerneltest"
)

// TestRecorded compares kernels and shape functions with TensorFlow's recorded results for the same
// inputs.
func TestRecorded(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recorded cases: %v", err)
	}
	kerneltest.RunCases(t, files...)
}
