package nn

import (
	"path/filepath"
	"testing"

	"github.com/weft-ml/weft/internal/test/kerneltest"
)

// TestCases compares values, errors and shapes with recorded results of TensorFlow.
func TestCases(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	kerneltest.RunCases(t, files...)
}
