package data

import (
	"github.com/weft-ml/weft/internal/numeric/philox"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
)

func init() {
	register(opdef.Def{
		Name: "SamplingDataset", Doc: "Creates a dataset of a random sample of its input. Each element is kept with probability rate.",
		In:    []string{"input_dataset: variant", "rate: float32", "seed: int64", "seed2: int64"},
		Attrs: withSpec(), Shape: samplingShape,
	}, newSampling)
}

func samplingShape(c *opdef.ShapeContext) error {
	for i := range 3 {
		if _, err := opdef.WithRank(c.In[1+i], 0); err != nil {
			return err
		}
	}
	return opdef.ScalarShape(c)
}

type samplingDataset struct {
	stage
	rate        float32
	seed, seed2 int64
}

func newSampling(n *node, ctx *kernel.Context) (dataset, error) {
	s, err := n.stageOf(ctx)
	if err != nil {
		return nil, err
	}
	d := &samplingDataset{stage: s}
	if d.rate, err = scalar[float32](n, ctx, "rate"); err != nil {
		return nil, err
	}
	v, err := n.scalars(ctx, "seed", "seed2")
	if err != nil {
		return nil, err
	}
	d.seed, d.seed2 = v[0], v[1]
	return d, nil
}

func (d *samplingDataset) cardinality() int64 { return unknown }

func (d *samplingDataset) iterate(r *run) (iterator, error) {
	src, err := d.begin(r)
	return &samplingIterator{src, d, newStream(resolveSeeds(d.seed, d.seed2))}, err
}

type samplingIterator struct {
	source
	d       *samplingDataset
	numbers stream
}

func (it *samplingIterator) next(r *run) (element, error) {
	for {
		e, err := it.pull(r)
		if err != nil || philox.Unit32(it.numbers.next()) < it.d.rate {
			return e, err
		}
		e.release()
	}
}

func (it *samplingIterator) state(a *archive) {
	it.numbers.state(a)
	it.source.state(a)
}
