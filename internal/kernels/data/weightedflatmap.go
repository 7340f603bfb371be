package data

import (
	"math"
	"slices"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	register(opdef.Def{
		Name: "WeightedFlatMapDataset",
		Doc: "Creates a dataset that concatenates elements of several datasets in proportion to their weights, until one dataset has " +
			"no more.",
		In: []string{"input_datasets: N * variant", "weights: M * float64"}, Attrs: withSpecAndMetadata("N: int >= 2", "M: int >= 2"),
	}, newWeightedFlatMap)
}

type weightedFlatMapDataset struct {
	spec
	inputs []dataset
	counts []int64 // number of elements of each input
}

func newWeightedFlatMap(n *node, ctx *kernel.Context) (dataset, error) {
	size := n.Attrs.Int("N")
	inputs, err := datasetsOf(ctx, 0, size)
	if err != nil {
		return nil, err
	}
	if m := ctx.NumInputs() - size; m != size {
		return nil, status.InvalidArgumentf("`input_datasets` and `weights` of the WeightedFlatMap must have the same size. Got %d datasets and %d "+
			"weights.", size, m)
	}
	d := &weightedFlatMapDataset{spec: n.spec(), inputs: inputs}
	if err := d.join("WeightedFlatMap", inputs); err != nil {
		return nil, err
	}
	weights := membudget.Make[float64](size)
	d.counts = membudget.Make[int64](size)
	for i, in := range inputs {
		switch d.counts[i] = in.cardinality(); d.counts[i] {
		case infinite:
			return nil, status.InvalidArgumentf("Cardinalities of the inputs must be known. Input %d has INFINITE cardinality.", i)
		case unknown:
			return nil, status.InvalidArgumentf("Cardinalities of the inputs must be known. Input %d has UNKNOWN cardinality.", i)
		}
	}
	for i := range weights {
		t := ctx.Input(size + i)
		if t.NumElements() != 1 {
			return nil, status.InvalidArgumentf("`weights` must be scalars. Weight %d has shape %v", i, t.Shape())
		}
		if weights[i] = tensor.Values[float64](t)[0]; !(weights[i] > 0) { // a NaN is not positive
			return nil, status.InvalidArgumentf("`weights` must be greater than 0.0. Input %d has a weight of %v", i, weights[i])
		}
	}
	return d, d.weigh(weights)
}

// weigh reduces counts, initially the sizes of the inputs, in proportion to the weights. As in
// TensorFlow, the input with the least product of size and weight sets the scale, so another input
// may have too few elements.
func (d *weightedFlatMapDataset) weigh(weights []float64) error {
	greatest := slices.Max(weights)
	some, of := math.Inf(1), 0.0
	for i, w := range weights {
		if n := float64(d.counts[i]) * w / greatest; n < some {
			some, of = n, w
		}
	}
	for i, w := range weights {
		n := int64(some * w / of)
		if n > d.counts[i] {
			return status.InvalidArgumentf("Input %d needs to have at least %d elements. It only has %d elements.", i, n, d.counts[i])
		}
		d.counts[i] = n
	}
	return nil
}

func (d *weightedFlatMapDataset) cardinality() int64 {
	sum := int64(0)
	for _, n := range d.counts {
		sum += n
	}
	return sum
}

func (d *weightedFlatMapDataset) iterate(r *run) (iterator, error) {
	it := &weightedFlatMapIterator{d: d, inputs: membudget.Make[iterator](len(d.inputs))}
	for i, in := range d.inputs {
		var err error
		if it.inputs[i], err = open(r, in); err != nil {
			return nil, err
		}
	}
	return it, nil
}

type weightedFlatMapIterator struct {
	d      *weightedFlatMapDataset
	inputs []iterator
	i      int64 // index of the current input
	taken  int64 // number of elements taken from it
}

func (it *weightedFlatMapIterator) next(r *run) (element, error) {
	for it.i < int64(len(it.inputs)) && it.taken >= it.d.counts[it.i] {
		it.i, it.taken = it.i+1, 0
	}
	if it.i == int64(len(it.inputs)) {
		return nil, errEnd
	}
	it.taken++
	return it.inputs[it.i].next(r)
}

func (it *weightedFlatMapIterator) state(a *archive) {
	a.int(&it.i)
	a.int(&it.taken)
	if it.i < 0 || it.i > int64(len(it.inputs)) {
		a.fail(status.InvalidArgumentf("the saved state of the iterator does not match the dataset"))
		return
	}
	for _, in := range it.inputs {
		in.state(a)
	}
}
