package data

import (
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterFunc(opdef.Def{
		Name: "ComputeBatchSize", Doc: "Returns the batch size of a dataset, or -1 if it is not known.",
		In: []string{"input_dataset: variant"}, Out: []string{"batch_size: int64"}, Shape: opdef.ScalarShape,
	}, func(ctx *kernel.Context) error {
		if _, err := datasetOf(ctx.Input(0)); err != nil {
			return err
		}
		ctx.SetOutput(0, tensor.Scalar(batchSize(ctx.Input(0))))
		return nil
	})
}

// Operations that batchSize handles, without version suffixes: those that create batches, and those
// that keep the batch size.
var (
	batchers = []string{"BatchDataset", "PaddedBatchDataset", "MapAndBatchDataset", "ExperimentalMapAndBatchDataset"}
	keepers  = []string{
		"AssertCardinalityDataset", "CacheDataset", "FilterDataset", "FinalizeDataset", "ModelDataset", "OptimizeDataset", "OptionsDataset",
		"ParseExampleDataset", "PrefetchDataset", "RepeatDataset", "ShardDataset", "ShuffleAndRepeatDataset", "ShuffleDataset", "SkipDataset",
		"TakeDataset",
	}
)

// noBatchSize is the value for an unknown batch size.
const noBatchSize = -1

// batchSize returns the requested batch size of a dataset. The last batch may be smaller.
func batchSize(t *tensor.Tensor) int64 {
	m := nodeDatasetOf(t)
	if m == nil {
		return noBatchSize
	}
	op := m.op()
	switch {
	case op == "MapAndBatchDataset", op == "ExperimentalMapAndBatchDataset":
		return tensor.Value[int64](&m.inputs[len(m.inputs)-3])
	case anyVersion(op, batchers):
		return tensor.Value[int64](&m.inputs[1])
	case anyVersion(op, joiners):
		size := batchSize(&m.inputs[0])
		for i := range m.inputs {
			if batchSize(&m.inputs[i]) != size {
				return noBatchSize
			}
		}
		return size
	case anyVersion(op, keepers):
		return batchSize(&m.inputs[0])
	}
	return noBatchSize
}
