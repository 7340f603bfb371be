package data

import (
	"github.com/weft-ml/weft/internal/opkit/stacking"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	in := []string{"components: Toutput_types"}
	attrs := []string{"Toutput_types: list(type) >= 1", "output_shapes: list(shape) >= 1"}
	register(opdef.Def{
		Name: "TensorDataset", Doc: "Creates a dataset of a single element.", In: in, Attrs: append(attrs[:2:2], metadata), Stateful: true,
	}, newTensors)
	register(opdef.Def{
		Name: "TensorSliceDataset", Doc: "Creates a dataset of the rows of tensors.", In: in, Stateful: true,
		Attrs: append(attrs[:2:2], "is_files: bool = false", metadata, "replicate_on_split: bool = false"),
	}, newSlices)
}

// tensorsDataset contains one element, or one element for each row of its tensors.
type tensorsDataset struct {
	spec
	tensors element
	rows    bool
	n       int64
}

func newTensors(n *node, ctx *kernel.Context) (dataset, error) {
	all, err := n.inputs(ctx, "components")
	if err != nil {
		return nil, err
	}
	d := &tensorsDataset{spec: *specOf(all), tensors: all, n: 1}
	asked := n.spec()
	return d, d.check(&asked)
}

func newSlices(n *node, ctx *kernel.Context) (dataset, error) {
	all, err := n.inputs(ctx, "components")
	if err != nil {
		return nil, err
	}
	for i := range all {
		if all[i].Rank() == 0 {
			return nil, status.InvalidArgumentf("All components must be at least 1-dimensional")
		}
		if all[i].Dim(0) != all[0].Dim(0) {
			return nil, status.InvalidArgumentf("All components must have the same size in the 0th dimension")
		}
	}
	d := &tensorsDataset{*specOf(all), all, true, int64(all[0].Dim(0))}
	for i := range all {
		d.shapes[i] = all[i].Shape()[1:].Partial()
	}
	asked := n.spec()
	return d, d.check(&asked)
}

func (d *tensorsDataset) cardinality() int64 { return d.n }

func (d *tensorsDataset) iterate(*run) (iterator, error) { return &tensorsIterator{d: d}, nil }

type tensorsIterator struct {
	d *tensorsDataset
	i int64
}

func (it *tensorsIterator) next(*run) (element, error) {
	if it.i >= it.d.n {
		return nil, errEnd
	}
	it.i++
	if !it.d.rows {
		return it.d.tensors.retain(), nil
	}
	return rowOf(it.d.tensors, int(it.i-1))
}

func (it *tensorsIterator) state(a *archive) { a.int(&it.i) }

// rowOf returns a row of each component.
func rowOf(e element, i int) (element, error) {
	out := element(membudget.Make[tensor.Tensor](len(e)))
	for c := range e {
		var err error
		if out[c], err = stacking.Row(&e[c], i); err != nil {
			return nil, err
		}
	}
	return out, nil
}
