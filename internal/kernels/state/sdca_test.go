package state

import (
	"testing"

	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// The choice of examples, whose time grows with the square of their number, ends with its step.
func TestSDCAEndsWithStep(t *testing.T) {
	zeros := func(shape ...int64) tensor.Tensor {
		z, err := tensor.Zeros(tensor.Float32, shape)
		if err != nil {
			t.Fatal(err)
		}
		return z
	}
	kerneltest.WantCancelled(t, "SdcaOptimizer", opdef.Attrs{
		"loss_type": "squared_loss", "adaptative": true, "num_sparse_features": int64(0), "num_sparse_features_with_values": int64(0),
		"num_dense_features": int64(1), "l1": float32(0), "l2": float32(1), "num_loss_partitions": int64(1), "num_inner_iterations": int64(1),
	}, zeros(2, 1), zeros(2), zeros(2), zeros(1, 1), zeros(2, 4))
}
