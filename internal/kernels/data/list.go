package data

import (
	"slices"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
)

func init() {
	register(opdef.Def{
		Name: "ListDataset", Doc: "Creates a dataset from a list of tensors: the components of all elements in order.",
		In: []string{"tensors: Tinput_types"}, Attrs: slices.Concat([]string{"Tinput_types: list(type) >= 1"}, withSpecAndMetadata()), Stateful: true,
	}, newList)
	register(opdef.Def{
		Name: "WindowOp", Doc: "Creates a dataset of the elements of a window from the components of all elements in order.",
		In: []string{"inputs: Tinputs"}, Attrs: append(withSpec(), "Tinputs: list(type) >= 1"),
	}, newList)
}

func newList(n *node, ctx *kernel.Context) (dataset, error) {
	d := &listDataset{spec: n.spec()}
	size, given := len(d.types), ctx.NumInputs()
	if given%size != 0 {
		return nil, status.InvalidArgumentf("%d tensors cannot be split into elements of %d components", given, size)
	}
	all, err := n.inputs(ctx, n.Op.Inputs[0].Name)
	if err != nil {
		return nil, err
	}
	for e := range slices.Chunk(all, size) {
		if err := d.check(specOf(e)); err != nil {
			all.release()
			return nil, err
		}
		d.all = membudget.Append(d.all, e)
	}
	return d, nil
}

// listDataset contains the elements of a list.
type listDataset struct {
	spec
	all []element
}

func (d *listDataset) cardinality() int64 { return int64(len(d.all)) }

func (d *listDataset) at(_ *run, i int64) (element, error) { //nolint:unparam // other datasets can fail
	return d.all[i].retain(), nil
}

func (d *listDataset) iterate(*run) (iterator, error) {
	return &listIterator{d: d}, nil
}

type listIterator struct {
	d *listDataset
	i int64
}

func (it *listIterator) next(*run) (element, error) {
	if it.i >= int64(len(it.d.all)) {
		return nil, errEnd
	}
	it.i++
	return it.d.all[it.i-1].retain(), nil
}

func (it *listIterator) state(a *archive) { a.int(&it.i) }
