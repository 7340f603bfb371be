package mathops

import (
	"testing"

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
	kerneltest.Quickly(t, func() error {
		_, err := kerneltest.Try("DenseBincount", opdef.Attrs{"Tidx": tensor.Int32, "T": tensor.Float32}, none, tensor.Scalar[int32](0), tensor.Vector[float32]())
		return err
	})
}
