package quantize

import (
	"path/filepath"
	"testing"

	"github.com/weft-ml/weft/internal/test/kerneltest"
)

func TestCases(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	kerneltest.RunCases(t, files...)
}
