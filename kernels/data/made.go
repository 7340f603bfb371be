package data

import (
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// made is a dataset with the node and the inputs that made it, from which it can be written down.
type made struct {
	dataset
	n      *node
	inputs element
}

// makeFrom returns the variant of the dataset that a node makes of its inputs.
func makeFrom(n *node, ctx *kernel.Context, d dataset) tensor.Tensor {
	m := &made{dataset: d, n: n, inputs: make(element, ctx.NumInputs())}
	for i := range m.inputs {
		m.inputs[i] = ctx.Input(i).Retain()
	}
	return tensor.Scalar(tensor.VariantValue{Value: m})
}

// wrap returns the variant of a dataset that no node made.
func wrap(d dataset) tensor.Tensor { return tensor.Scalar(tensor.VariantValue{Value: d}) }

// datasetOf returns the dataset that a tensor holds.
func datasetOf(t *tensor.Tensor) (dataset, error) {
	if t.DType() != tensor.Variant || t.Rank() != 0 {
		return nil, status.InvalidArgumentf("Dataset tensor must be a scalar of dtype DT_VARIANT.")
	}
	switch d := tensor.Value[tensor.VariantValue](t).Value.(type) {
	case *made:
		return d.dataset, nil
	case dataset:
		return d, nil
	}
	return nil, status.InvalidArgumentf("Tensor must be a Dataset object.")
}
