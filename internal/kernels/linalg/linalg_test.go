package linalg

import (
	"path/filepath"
	"testing"

	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// TestRecorded compares kernels and shape functions with recorded results of TensorFlow.
func TestRecorded(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recorded cases: %v", err)
	}
	kerneltest.RunCases(t, files...)
}

// Decompositions that repeat steps until they converge end with the step of the session.
func TestDecompositionsEndWithStep(t *testing.T) {
	a, err := tensor.FromSlice(tensor.Shape{3, 3}, []float64{8, 1, 2, 3, 9, 4, 5, 6, 7})
	if err != nil {
		t.Fatal(err)
	}
	attrs := opdef.Attrs{"T": tensor.Float64}
	for _, op := range []string{"Svd", "BatchSvd", "SelfAdjointEigV2", "BatchSelfAdjointEig", "MatrixSquareRoot", "MatrixExponential"} {
		kerneltest.WantCancelled(t, op, attrs, a)
	}
	kerneltest.WantCancelled(t, "MatrixSolveLs", opdef.Attrs{"T": tensor.Float64, "fast": false}, a, a, tensor.Scalar(0.0))
	kerneltest.WantCancelled(t, "Eig", opdef.Attrs{"T": tensor.Float64, "Tout": tensor.Complex128}, a)
}
