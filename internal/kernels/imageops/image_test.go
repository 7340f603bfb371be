package imageops

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

// Selections of boxes end when their step ends, also one that would draw forever.
func TestSelectionsEndWithStep(t *testing.T) {
	scalar := tensor.Scalar[float32]
	boxes, err := tensor.FromSlice(tensor.Shape{2, 4}, []float32{0, 0, 1, 1, 0, 0, 1, 2})
	if err != nil {
		t.Fatal(err)
	}
	scores := tensor.Vector[float32](1, 2)
	kerneltest.WantCancelled(t, "NonMaxSuppressionV3", nil, boxes, scores, tensor.Scalar[int32](2), scalar(0.5), scalar(0))
	stack, err := tensor.FromSlice(tensor.Shape{1, 2, 1, 4}, tensor.Values[float32](&boxes))
	if err != nil {
		t.Fatal(err)
	}
	classes, err := tensor.FromSlice(tensor.Shape{1, 2, 1}, tensor.Values[float32](&scores))
	if err != nil {
		t.Fatal(err)
	}
	kerneltest.WantCancelled(t, "CombinedNonMaxSuppression", nil, stack, classes, tensor.Scalar[int32](2), tensor.Scalar[int32](2),
		scalar(0.5), scalar(0))
	// No box covers both objects with this ratio of the sides.
	objects, err := tensor.FromSlice(tensor.Shape{1, 2, 4}, []float32{0, 0, 0.1, 0.1, 0.9, 0.9, 1, 1})
	if err != nil {
		t.Fatal(err)
	}
	kerneltest.WantCancelled(t, "SampleDistortedBoundingBoxV2",
		opdef.Attrs{"T": tensor.Int32, "max_attempts": int64(1) << 60, "area_range": []float32{0.01, 0.02}},
		tensor.Vector[int32](100, 100, 3), objects, scalar(1))
}
