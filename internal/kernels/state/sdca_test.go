package state

import (
	"fmt"
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

// An error names some of the indices of examples.
func TestTextOfExamples(t *testing.T) {
	floats := func(shape ...int64) tensor.Tensor {
		z, err := tensor.Zeros(tensor.Float32, shape)
		if err != nil {
			t.Fatal(err)
		}
		return z
	}
	long := tensor.Vector(make([]int64, 1<<20)...)
	_, err := kerneltest.Try("SdcaOptimizerV2", opdef.Attrs{
		"loss_type": "squared_loss", "adaptive": false, "num_sparse_features": int64(1), "num_sparse_features_with_values": int64(0),
		"num_dense_features": int64(0), "l1": float32(0), "l2": float32(1), "num_loss_partitions": int64(1), "num_inner_iterations": int64(1),
	}, long, tensor.Vector[int64](1), floats(1), floats(1), tensor.Vector[int64](1), floats(1), floats(1, 4))
	if err == nil || len(err.Error()) > 1000 {
		t.Errorf("the error is %d bytes long", len(fmt.Sprint(err)))
	}
}
