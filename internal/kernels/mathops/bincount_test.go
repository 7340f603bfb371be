package mathops

import (
	"testing"
	"time"

	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// Rows without values and bins take no time.
func TestBincountOfNoBins(t *testing.T) {
	none, err := tensor.FromSlice(tensor.Shape{1 << 40, 0}, []int32{})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := kerneltest.Try("DenseBincount", opdef.Attrs{"Tidx": tensor.Int32, "T": tensor.Float32}, none, tensor.Scalar[int32](0), tensor.Vector[float32]())
		ended <- err
	}()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it takes too long")
	}
}
