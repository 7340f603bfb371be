package data

import (
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	in := []string{"seed: int64", "seed2: int64"}
	doc := "Creates an infinite dataset of random 32-bit numbers."
	register(opdef.Def{Name: "RandomDataset", Doc: doc, In: in, Attrs: withSpecAndMetadata(), Stateful: true}, newRandom)
	register(opdef.Def{
		Name: "RandomDatasetV2", Doc: doc, In: append(in[:2:2], "seed_generator: resource"), Stateful: true,
		Attrs: append([]string{"rerandomize_each_iteration: bool = false"}, withSpecAndMetadata()...),
	}, newRandom)
}

type randomDataset struct {
	spec
	seeds *seeds
}

func newRandom(n *node, ctx *kernel.Context) (dataset, error) {
	from, err := n.seeds(ctx, "rerandomize_each_iteration")
	return &randomDataset{n.spec(), from}, err
}

func (d *randomDataset) cardinality() int64 { return infinite }

func (d *randomDataset) iterate(*run) (iterator, error) { return &randomIterator{d.seeds.next()}, nil }

type randomIterator struct{ numbers stream }

func (it *randomIterator) next(*run) (element, error) {
	return element{tensor.Scalar(int64(it.numbers.next()))}, nil
}

func (it *randomIterator) state(a *archive) { it.numbers.state(a) }
