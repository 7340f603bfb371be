package state

import (
	"context"
	"testing"

	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// A number that is scattered to a large row again and again ends with its step.
func TestScatterOfNumberEndsWithStep(t *testing.T) {
	const width = 1 << 22
	own, err := tensor.Zeros(tensor.Float32, tensor.Shape{1, width})
	if err != nil {
		t.Fatal(err)
	}
	one := tensor.Scalar[float32](1)
	if err := scatterScalar(t.Context(), elementwise.Add, &own, &one, []int64{0, 0, 0}, width); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if scatterScalar(ctx, elementwise.Add, &own, &one, make([]int64, 1000), width) == nil {
		t.Error("no error after the end of the step")
	}
	if v := tensor.Values[float32](&own)[width-1]; v != 4 {
		t.Errorf("the last element is %v, want 3 additions and one more before the first look at the step", v)
	}
}

// Fingerprints of strings that share a long text end with their step.
func TestFingerprintsEndWithStep(t *testing.T) {
	kerneltest.WantCancelled(t, "SdcaFprint", opdef.Attrs{}, kerneltest.SharedText(2, 1<<20))
}
