package boosted

import (
	"testing"

	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// Statistics have any number of nodes without buckets, and large matrices of hessians. The search
// for splits ends with its step.
func TestSearchForSplitsEndsWithItsStep(t *testing.T) {
	zeros := func(shape ...int64) tensor.Tensor {
		z, err := tensor.Zeros(tensor.Float32, shape)
		if err != nil {
			t.Fatal(err)
		}
		return z
	}
	zero := tensor.Scalar[float32](0)
	kerneltest.WantCancelled(t, "BoostedTreesCalculateBestGainsPerFeature", opdef.Attrs{"max_splits": int64(1), "num_features": int64(1)},
		tensor.Vector[int32](0, 2000), zeros(2000, 0, 2), zero, zero, zero, tensor.Scalar[float32](1))
	const logits = 40
	for _, kind := range []string{"inequality", "equality"} {
		kerneltest.WantCancelled(t, "BoostedTreesCalculateBestFeatureSplit", opdef.Attrs{"logits_dimension": int64(logits), "split_type": kind},
			tensor.Vector[int32](0, 1), zeros(1, 1, 3, logits+logits*logits), zero, tensor.Scalar[float32](1), zero, zero)
	}
}
