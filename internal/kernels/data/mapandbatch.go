package data

import (
	"slices"

	"github.com/weft-ml/weft/kernel"
)

func init() {
	doc := "Creates a dataset that applies a function to several elements of its input in parallel and batches the results."
	in := []string{"other_arguments: Targuments", "batch_size: int64", "num_parallel_calls: int64", "drop_remainder: bool"}
	attrs := withSpec("f: func", "Targuments: list(type) >= 0")
	registerStage("MapAndBatchDataset", doc, in, append(slices.Clip(attrs), "preserve_cardinality: bool = false", metadata), newMapAndBatch)
	registerStage("MapAndBatchDatasetV2", doc+" From TensorFlow 1.12.", in, attrs, newMapAndBatch)
}

func newMapAndBatch(n *node, ctx *kernel.Context, s stage) (dataset, error) {
	mapped, err := newParallelMap[int64](n, ctx, stage{&spec{s.types, rowShapes(s.spec)}, s.input})
	if err != nil {
		return nil, err
	}
	d := &batchDataset{stage: stage{s.spec, mapped}, join: stack}
	return d, d.parse(n, ctx)
}
