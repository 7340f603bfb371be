package data

import "github.com/weft-ml/weft/tensor"

// Fields of messages: what tensorflow.data.Options says of rewriting, and there whether maps are to
// be parallel; what it says of numbers that the runtime chooses, and there whether it may.
const (
	optimizationOptions = 3
	mapParallelization  = 12
	autotuneOptions     = 7
	autotuneEnabled     = 1
)

// asksForParallelMaps reports whether options ask for it; the last that say so count.
func asksForParallelMaps(options string) bool {
	if may, ok := varintField(messageField(options, autotuneOptions), autotuneEnabled); ok && may == 0 {
		return false
	}
	v, _ := varintField(messageField(options, optimizationOptions), mapParallelization)
	return v != 0
}

// parallelized returns the dataset with maps that call their functions for several elements at
// once, where these have no state. Those that functions make are left alone.
func parallelized(r *run, t *tensor.Tensor) (tensor.Tensor, error) {
	m := madeOf(t)
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
	return m.n.another(r, "ParallelMapDatasetV2", attrs, append(madeOf(&out).inputs.retain(), tensor.Scalar[int64](autotune))...)
}
