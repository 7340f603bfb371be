package data

import "github.com/weft-ml/weft/tensor"

// Field numbers in tensorflow.data.Options: the optimization options and their map_parallelization,
// the autotune options and their enabled.
const (
	optimizationOptions = 3
	mapParallelization  = 12
	autotuneOptions     = 7
	autotuneEnabled     = 1
)

// requestsParallelMaps reports whether options request parallel maps. The last value of a field
// counts.
func requestsParallelMaps(options string) bool {
	if may, ok := varintField(messageField(options, autotuneOptions), autotuneEnabled); ok && may == 0 {
		return false
	}
	v, _ := varintField(messageField(options, optimizationOptions), mapParallelization)
	return v != 0
}

// parallelized returns the dataset with its stateless maps replaced by parallel maps. Datasets that
// functions create are unchanged.
func parallelized(r *run, t *tensor.Tensor) (tensor.Tensor, error) {
	m := nodeDatasetOf(t)
	if m == nil {
		return t.Retain(), nil
	}
	out, err := m.rewrite(r, func(in *tensor.Tensor) (tensor.Tensor, error) { return parallelized(r, in) })
	if err != nil || m.op() != "MapDataset" || m.n.functions["f"].Op().Stateful || m.n.Attrs.Bool("force_synchronous") {
		return out, err
	}
	defer out.Release()
	attrs := m.n.Attrs.Clone()
	delete(attrs, "force_synchronous")
	attrs["deterministic"] = "true"
	return m.n.newDataset(r, "ParallelMapDatasetV2", attrs, append(nodeDatasetOf(&out).inputs.retain(), tensor.Scalar[int64](autotune))...)
}
