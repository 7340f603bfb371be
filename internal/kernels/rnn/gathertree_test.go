package rnn

import (
	"testing"

	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// Beams without steps take no time.
func TestBeamsWithoutSteps(t *testing.T) {
	none, err := tensor.FromSlice(tensor.Shape{0, 1, 1 << 40}, []int32{})
	if err != nil {
		t.Fatal(err)
	}
	kerneltest.Quickly(t, func() error {
		_, err := kerneltest.Try("GatherTree", opdef.Attrs{"T": tensor.Int32}, none, none, tensor.Vector[int32](1), tensor.Scalar[int32](0))
		return err
	})
}
