package data

import (
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	register(opdef.Def{
		Name: "FilterByLastComponentDataset",
		Doc: "Creates a dataset of the elements of its input whose last component is true, without this component. " +
			"From TensorFlow 1.12, whose graph optimizer inserts it.",
		In: []string{"input_dataset: variant"}, Out: []string{"output: variant"}, Attrs: withSpec(),
	}, func(n *node, ctx *kernel.Context) (dataset, error) {
		s, err := n.stageOf(ctx)
		return &lastComponentDataset{s}, err
	})
}

// lastComponentDataset contains the elements whose last component is true.
type lastComponentDataset struct{ stage }

func (d *lastComponentDataset) cardinality() int64 { return unknown }

func (d *lastComponentDataset) iterate(r *run) (iterator, error) {
	src, err := d.begin(r)
	return &lastComponentIterator{src}, err
}

type lastComponentIterator struct{ source }

func (it *lastComponentIterator) next(r *run) (element, error) {
	for {
		e, err := it.input.next(r)
		if err != nil {
			return nil, err
		}
		n := len(e) - 1
		if n < 1 || e[n].DType() != tensor.Bool || e[n].Rank() != 0 {
			e.release()
			return nil, status.InvalidArgumentf("Last component must be a bool scalar.")
		}
		holds := tensor.Value[bool](&e[n])
		e[n].Release()
		rest := element(membudget.Make[tensor.Tensor](n))
		copy(rest, e)
		if holds {
			return rest, nil
		}
		rest.release()
	}
}
