package array

import (
	"path/filepath"
	"testing"

	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
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

// The depth of patches does not exceed an int64. The product of these sizes is 1 modulo 2^64.
func TestSizesOfPatches(t *testing.T) {
	image, err := tensor.FromSlice(tensor.Shape{1, 1, 1, 1}, []float32{1})
	if err != nil {
		t.Fatal(err)
	}
	volume, err := image.WithShape(tensor.Shape{1, 1, 1, 1, 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		op    string
		in    tensor.Tensor
		attrs opdef.Attrs
	}{
		{"ExtractImagePatches", image, opdef.Attrs{
			"ksizes": []int64{1, 7, 0x6db6db6db6db6db7, 1}, "strides": []int64{1, 1, 1, 1}, "rates": []int64{1, 1, 1, 1},
		}},
		{"ExtractVolumePatches", volume, opdef.Attrs{
			"ksizes": []int64{1, 1<<31 - 1, 1<<31 - 1, 1<<31 - 1, 1}, "strides": []int64{1, 1, 1, 1, 1},
		}},
	} {
		c.attrs["T"], c.attrs["padding"] = tensor.Float32, "SAME"
		if _, err := kerneltest.Try(c.op, c.attrs, c.in); status.CodeOf(err) != status.InvalidArgument {
			t.Errorf("%s: %v", c.op, err)
		}
	}
}
