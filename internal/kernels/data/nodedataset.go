package data

import (
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// nodeDataset is a dataset with the node and the inputs that created it. They permit writing it as
// a graph and creating it again with other inputs.
type nodeDataset struct {
	dataset
	n      *node
	build  maker
	inputs element
	size   size
}

// size says how large the tree of the stages of a dataset is. A stage that is the input of several
// others counts for each of them, because traversals visit it as often.
type size struct{ stages, depth int }

// Limits of the trees of datasets, far beyond those of programs. Without them, a few nodes could
// describe a tree that no traversal comes to the end of.
const (
	maxStages = 1 << 20
	maxDepth  = 10_000
)

// measure returns the size of a dataset with the given inputs.
func measure(inputs element) (size, error) {
	s := size{stages: 1}
	for i := range inputs {
		if in := nodeDatasetOf(&inputs[i]); in != nil {
			s.stages += in.size.stages
			s.depth = max(s.depth, in.size.depth)
		}
	}
	s.depth++
	if s.stages > maxStages || s.depth > maxDepth {
		return s, status.InvalidArgumentf("the dataset has %d stages, %d in a row; the limits are %d and %d", s.stages, s.depth, maxStages, maxDepth)
	}
	return s, nil
}

// newNodeDataset returns the variant of the dataset that build creates from the node's inputs.
func newNodeDataset(n *node, build maker, ctx *kernel.Context) (tensor.Tensor, error) {
	d, err := build(n, ctx)
	if err != nil {
		return tensor.Tensor{}, err
	}
	m := &nodeDataset{dataset: d, n: n, build: build, inputs: element(membudget.Make[tensor.Tensor](ctx.NumInputs()))}
	for i := range m.inputs {
		m.inputs[i] = ctx.Input(i).Retain()
	}
	if m.size, err = measure(m.inputs); err != nil {
		m.inputs.release()
		return tensor.Tensor{}, err
	}
	return tensor.Scalar(tensor.VariantValue{Value: m}), nil
}

// wrap returns the variant of a dataset without a node.
func wrap(d dataset) tensor.Tensor { return tensor.Scalar(tensor.VariantValue{Value: d}) }

// datasetOf returns the dataset in a tensor.
func datasetOf(t *tensor.Tensor) (dataset, error) {
	if t.DType() != tensor.Variant || t.Rank() != 0 {
		return nil, status.InvalidArgumentf("Dataset tensor must be a scalar of dtype DT_VARIANT.")
	}
	switch d := tensor.Value[tensor.VariantValue](t).Value.(type) {
	case *nodeDataset:
		return d.dataset, nil
	case dataset:
		return d, nil
	}
	return nil, status.InvalidArgumentf("Tensor must be a Dataset object.")
}

// nodeDatasetOf returns the dataset in a tensor with its node, or nil if it has none.
func nodeDatasetOf(t *tensor.Tensor) *nodeDataset {
	if t.DType() != tensor.Variant || t.Rank() != 0 {
		return nil
	}
	m, _ := tensor.Value[tensor.VariantValue](t).Value.(*nodeDataset)
	return m
}

// op returns the name of the operation.
func (m *nodeDataset) op() string { return m.n.Op.Name }

// with returns the variant of the dataset that the node creates from other inputs, which it takes
// over.
func (m *nodeDataset) with(r *run, inputs element) (tensor.Tensor, error) {
	ctx := withStep(r.ctx, r.ctx.Step)
	values := membudget.Make[kernel.Value](len(inputs))
	for i := range inputs {
		values[i].Tensor = inputs[i]
	}
	ctx.Bind(values, membudget.Make[kernel.Value](len(m.n.Outputs)), m.n.Outputs)
	defer inputs.release()
	return newNodeDataset(m.n, m.build, ctx)
}

// withFirst is like with, but replaces only the first input by t.
func (m *nodeDataset) withFirst(r *run, t tensor.Tensor) (tensor.Tensor, error) {
	inputs := m.inputs.retain()
	inputs[0].Release()
	inputs[0] = t
	return m.with(r, inputs)
}

// rewrite returns the dataset that the node creates after f is applied to the input datasets.
func (m *nodeDataset) rewrite(r *run, f func(*tensor.Tensor) (tensor.Tensor, error)) (tensor.Tensor, error) {
	inputs := m.inputs.retain()
	for i := range inputs {
		if nodeDatasetOf(&inputs[i]) == nil {
			continue
		}
		t, err := f(&m.inputs[i])
		if err != nil {
			inputs.release()
			return tensor.Tensor{}, err
		}
		inputs[i].Release()
		inputs[i] = t
	}
	return m.with(r, inputs)
}

// newDataset returns the variant of the dataset that another operation creates from inputs, which
// it takes over.
func (n *node) newDataset(r *run, op string, attrs opdef.Attrs, inputs ...tensor.Tensor) (tensor.Tensor, error) {
	c, err := newComponent(n, op, attrs)
	if err != nil {
		element(inputs).release()
		return tensor.Tensor{}, err
	}
	out, err := c.compute(r, inputs)
	if err != nil {
		return tensor.Tensor{}, err
	}
	return out[0], nil
}
