package data

import (
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterNew(opdef.Def{
		Name: "RewriteDataset", Doc: "Creates a dataset whose graph may be rewritten.",
		In: []string{"input_dataset: variant", "rewrite_name: string"}, Out: []string{"handle: variant"}, Attrs: withSpec(), Shape: opdef.ScalarShape,
	}, iterating(func(n *node, ctx *kernel.Context, r *run) error {
		if _, err := datasetOf(ctx.Input(0)); err != nil {
			return err
		}
		name, err := scalar[string](n, ctx, "rewrite_name")
		if err != nil {
			return err
		}
		out := ctx.Input(0).Retain()
		if name == replicateOnSplit && nodeDatasetOf(&out) != nil {
			out.Release()
			out, err = n.replicated(r, ctx.Input(0))
		}
		if err == nil {
			ctx.SetOutput(0, out)
		}
		return err
	}))
}

// replicateOnSplit is the name of a rewrite and of the attribute that it sets. With it every shard
// contains all elements of the source.
const replicateOnSplit = "replicate_on_split"

// replicated returns a dataset with the attribute set on all sources that have it.
func (n *node) replicated(r *run, t *tensor.Tensor) (tensor.Tensor, error) {
	m := nodeDatasetOf(t)
	if op := m.op(); op != "RangeDataset" && op != "TensorSliceDataset" {
		return m.rewrite(r, func(in *tensor.Tensor) (tensor.Tensor, error) { return n.replicated(r, in) })
	}
	attrs := m.n.Attrs.Clone()
	attrs[replicateOnSplit] = true
	return n.newDataset(r, m.op(), attrs, m.inputs.retain()...)
}
