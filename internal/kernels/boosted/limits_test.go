package boosted

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/weft-ml/weft/internal/opkit/guard"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// chain returns an ensemble with a tree of the given depth: the left child of each node is a leaf.
func chain(depth int) *ensemble {
	t := &tree{weight: 1}
	for i := range int32(depth) {
		t.nodes = append(t.nodes, node{kind: thresholdNode, bucket: -1, left: 2*i + 1, right: 2*i + 2, meta: true, gain: -1, hadLeaf: true}, node{kind: leafNode})
	}
	t.nodes = append(t.nodes, node{kind: leafNode})
	return &ensemble{trees: []*tree{t}}
}

// within returns the error of f within a limit of the memory of the process, in bytes.
func within(limit int64, f func() error) error {
	defer membudget.SetLimit(membudget.Limit())
	membudget.SetLimit(limit)
	return guard.Call("test", f)
}

const limit = 128 << 20

func wantExhausted(t *testing.T, f func() error) {
	t.Helper()
	if err := within(limit, f); status.CodeOf(err) != status.ResourceExhausted {
		t.Errorf("got %v", err)
	}
}

// Each stream of quantiles takes memory.
func TestMemoryOfStreams(t *testing.T) {
	env := kerneltest.NewEnv()
	handle := env.Run(t, "BoostedTreesQuantileStreamResourceHandleOp", nil)
	wantExhausted(t, func() error {
		node, err := env.Make("BoostedTreesCreateQuantileStreamResource", nil)
		if err == nil {
			_, err = node.Run(handle, tensor.Scalar[float32](0.1), tensor.Scalar[int64](2_500_000))
		}
		return err
	})
}

// put returns the handle of an ensemble.
func put(t *testing.T, env *kerneltest.Env, e *ensemble) tensor.Tensor {
	t.Helper()
	handle := env.Run(t, "BoostedTreesEnsembleResourceHandleOp", nil)
	env.Run(t, "BoostedTreesCreateEnsemble", nil, handle, tensor.Scalar[int64](0), tensor.Scalar(e.serialize()))
	return handle
}

// prune splits the last node of a chain with a number of logits, and then removes all splits.
func prune(t *testing.T, env *kerneltest.Env, handle tensor.Tensor, depth, logits int) error {
	t.Helper()
	node, err := env.Make("BoostedTreesUpdateEnsembleV2", opdef.Attrs{"num_features": int64(1), "logits_dimension": int64(logits)})
	if err != nil {
		t.Fatal(err)
	}
	one := tensor.Vector[int32](0)
	weights := of(t, tensor.Shape{1, int64(logits)}, make([]float32, logits)...)
	_, err = node.Run(handle, one, one, tensor.Vector(int32(2*depth)), tensor.Vector[float32](-1), one, weights, weights, tensor.Vector(defaultLeft),
		tensor.Scalar[int32](0), tensor.Scalar[float32](1), tensor.Scalar[int32](postPruning))
	return err
}

// The logits of a split are not related to the number of nodes of the tree.
func TestMemoryOfPruning(t *testing.T) {
	env := kerneltest.NewEnv()
	const depth = 10_000
	handle := put(t, env, chain(depth))
	wantExhausted(t, func() error { return prune(t, env, handle, depth, 4000) })
}

func TestPruningEndsWithStep(t *testing.T) {
	env := kerneltest.NewEnv()
	const depth = 200_000
	handle := put(t, env, chain(depth))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	env.Step.Context = ctx
	if err := prune(t, env, handle, depth, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// Each example has a text as long as its path.
func TestMemoryOfPaths(t *testing.T) {
	env := kerneltest.NewEnv()
	handle := put(t, env, chain(1500))
	wantExhausted(t, func() error {
		node, err := env.Make("BoostedTreesExampleDebugOutputs", opdef.Attrs{"num_bucketized_features": int64(1), "logits_dimension": int64(1)})
		if err == nil {
			_, err = node.Run(handle, tensor.Vector(make([]int32, 30_000)...))
		}
		return err
	})
}

func TestMemoryOfSerialized(t *testing.T) {
	large := &ensemble{}
	large.addTree(leaf{vector: make([]float32, 12<<20), many: true})
	wantExhausted(t, func() error {
		large.serialize()
		return nil
	})
	trees := strings.Repeat("\n\x00", 2_000_000)
	wantExhausted(t, func() error { return new(ensemble).parse(trees) })
}

// The statistics of many examples with few dimensions end when their step ends.
func TestStatsOfExamplesEndWithStep(t *testing.T) {
	const n = 1000
	sums := of(t, tensor.Shape{n, 1}, make([]float32, n)...)
	wantStatsCancelled(t, tensor.Vector(make([]int32, n)...), sums, sums, of[int32](t, tensor.Shape{0, 2}), tensor.Vector[int32](), tensor.Vector[int32](n, 10))
}

// An error does not name all elements of a shape.
func TestTextOfShapes(t *testing.T) {
	one, none := tensor.Scalar[float32](0), of[float32](t, tensor.Shape{0, 1})
	long := tensor.Vector(make([]int32, 1<<20)...)
	_, err := kerneltest.Try("BoostedTreesSparseCalculateBestFeatureSplit", opdef.Attrs{"logits_dimension": int64(1)},
		tensor.Vector[int32](0, 1), of[int32](t, tensor.Shape{0, 4}), tensor.Vector[float32](), long, one, one, one, one)
	if err == nil || len(err.Error()) > 1000 {
		t.Errorf("got %d bytes", len(err.Error()))
	}
	_, err = kerneltest.Try("BoostedTreesSparseAggregateStats", opdef.Attrs{"max_splits": int64(1), "num_buckets": int64(1)},
		tensor.Vector[int32](), none, none, of[int32](t, tensor.Shape{0, 2}), tensor.Vector[int32](), long)
	if err == nil || len(err.Error()) > 1000 {
		t.Errorf("got %d bytes", len(err.Error()))
	}
}
