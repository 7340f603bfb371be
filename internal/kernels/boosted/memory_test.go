package boosted

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

func of[T tensor.Elem](t *testing.T, shape tensor.Shape, vals ...T) tensor.Tensor {
	t.Helper()
	out, err := tensor.FromSlice(shape, vals)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// What grows with a number in an input, and not with the size of an input, is counted.
func TestMemory(t *testing.T) {
	const limit = 128 << 20
	kerneltest.WantExhausted(t, limit, "BoostedTreesSparseAggregateStats", opdef.Attrs{"max_splits": int64(1), "num_buckets": int64(1)},
		tensor.Vector[int32](0), of(t, tensor.Shape{1, 1}, float32(1)), of(t, tensor.Shape{1, 1}, float32(1)),
		of[int32](t, tensor.Shape{0, 2}), tensor.Vector[int32](), tensor.Vector[int32](1, math.MaxInt32))
	one := tensor.Scalar[float32](0)
	kerneltest.WantExhausted(t, limit, "BoostedTreesCalculateBestGainsPerFeature", opdef.Attrs{"max_splits": int64(1), "num_features": int64(1)},
		tensor.Vector[int32](0, 1<<30), of[float32](t, tensor.Shape{1 << 30, 0, 2}), one, one, one, one)
}

// The statistics of a dimension without other buckets take a map.
func TestMemoryOfDimensions(t *testing.T) {
	const n = 500_000
	indices := make([]int32, 4*n)
	for i := range n {
		indices[4*i+1] = int32(i)
	}
	one := tensor.Scalar[float32](0)
	kerneltest.WantExhausted(t, 128<<20, "BoostedTreesSparseCalculateBestFeatureSplit",
		opdef.Attrs{"logits_dimension": int64(1), "split_type": "inequality"},
		tensor.Vector[int32](0, 1), of(t, tensor.Shape{n, 4}, indices...), of(t, tensor.Shape{n}, make([]float32, n)...),
		tensor.Vector[int32](1, n, 2, 2), one, one, one, one)
}

// wantStatsCancelled runs BoostedTreesSparseAggregateStats in a step that has ended.
func wantStatsCancelled(t *testing.T, inputs ...tensor.Tensor) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	env := kerneltest.NewEnv()
	env.Step.Context = ctx
	node, err := env.Make("BoostedTreesSparseAggregateStats", opdef.Attrs{"max_splits": int64(1), "num_buckets": int64(1)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := node.Run(inputs...); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// The statistics of many dimensions end when their step ends.
func TestSparseStatsEndWithStep(t *testing.T) {
	wantStatsCancelled(t, tensor.Vector[int32](0), of(t, tensor.Shape{1, 1}, float32(1)), of(t, tensor.Shape{1, 1}, float32(1)),
		of[int32](t, tensor.Shape{0, 2}), tensor.Vector[int32](), tensor.Vector[int32](1, 10_000))
}
