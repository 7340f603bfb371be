package data

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	for name, attrs := range map[string][]string{
		"DatasetCardinality":             {"cardinality_options: string = ''"},
		"ExperimentalDatasetCardinality": nil,
	} {
		kernel.RegisterNew(opdef.Def{
			Name: name, Doc: "Returns the cardinality of a dataset: its number of elements, -1 if it is infinite, or -2 if it is not known.",
			In: []string{"input_dataset: variant"}, Out: []string{"cardinality: int64"}, Attrs: attrs, Shape: opdef.ScalarShape,
		}, iterating(cardinalityOf))
	}
	registerStage("AssertCardinalityDataset", "Creates a dataset with an asserted cardinality. An iteration fails if the number of elements differs.",
		[]string{"cardinality: int64"}, withSpec(), func(n *node, ctx *kernel.Context, s stage) (dataset, error) {
			count, err := scalar[int64](n, ctx, "cardinality")
			return &assertedDataset{s, count}, err
		})
}

// computes is the level of CardinalityOptions that permits reading elements to count them.
const computes = 2

func cardinalityOf(n *node, ctx *kernel.Context, r *run) error {
	d, err := datasetOf(ctx.Input(0))
	if err != nil {
		return err
	}
	const level = 1 // compute_level of tensorflow.data.CardinalityOptions
	if v, ok := varintField(n.Attrs.String("cardinality_options"), level); ok && v >= computes {
		countAll(r, d)
	}
	ctx.SetOutput(0, tensor.Scalar(d.cardinality()))
	return nil
}

// countAll counts the elements of the flat maps among a dataset and its inputs.
func countAll(r *run, d dataset) {
	for _, d := range reachable(d) {
		if d, ok := d.(*interleaveDataset); ok && d.f.op == "FlatMapDataset" && d.counted.Load() == nil {
			if n, err := d.count(r); err == nil {
				d.counted.Store(&n)
				counts.Add(1)
			}
		}
	}
}

// counts is the number of datasets that countAll has counted in the process.
var counts atomic.Uint64

// knownCardinality is the cardinality of a stage with several inputs, which are computed once only:
// a chain of stages that have an input twice would take exponential time. It is computed again when
// a dataset was counted.
type knownCardinality struct{ last atomic.Pointer[countedAt] }

type countedAt struct {
	counts uint64
	n      int64
}

func (k *knownCardinality) get(compute func() int64) int64 {
	now := counts.Load()
	if last := k.last.Load(); last != nil && last.counts == now {
		return last.n
	}
	n := compute()
	k.last.Store(&countedAt{now, n})
	return n
}

// count returns the sum of the sizes of a flat map's datasets.
func (d *interleaveDataset) count(r *run) (sum int64, err error) {
	it, err := open(r, d.input)
	if err != nil {
		return 0, err
	}
	var polls polls
	for {
		if err := polls.check(r); err != nil {
			return 0, err
		}
		e, err := it.next(r)
		if errors.Is(err, errEnd) {
			return sum, nil
		}
		if err != nil {
			return 0, err
		}
		of, err := d.f.dataset(r, e)
		if err != nil {
			return 0, err
		}
		n := of.cardinality()
		if n < 0 {
			return n, nil
		}
		sum += n
	}
}

type assertedDataset struct {
	stage
	n int64
}

func (d *assertedDataset) cardinality() int64 { return d.n }

func (d *assertedDataset) at(r *run, i int64) (element, error) {
	e, err := atIndex(r, d.input, i)
	if status.CodeOf(err) == status.OutOfRange {
		err = status.FailedPreconditionf("Input dataset was expected to contain %s but index %d could not be retrieved: %v", elementString(d.n), i, err)
	}
	return e, err
}

func (d *assertedDataset) iterate(r *run) (iterator, error) {
	src, err := d.begin(r)
	return &assertedIterator{source: src, d: d}, err
}

type assertedIterator struct {
	source
	d *assertedDataset
	i int64
}

func (it *assertedIterator) next(r *run) (element, error) {
	e, err := it.input.next(r)
	switch {
	case err == nil:
		it.i++
		if it.d.n != infinite && it.i > it.d.n {
			e.release()
			return nil, status.FailedPreconditionf("Input dataset was expected to contain %s but contained at least %s.",
				elementString(it.d.n), elementString(it.i))
		}
	case errors.Is(err, errEnd) && it.i != it.d.n:
		return nil, status.FailedPreconditionf("Input dataset was expected to contain %s but contained only %s.", elementString(it.d.n), elementString(it.i))
	}
	return e, err
}

func elementString(n int64) string {
	switch n {
	case infinite:
		return "an infinite number of elements"
	case 1:
		return "1 element"
	}
	return fmt.Sprintf("%d elements", n)
}

func (it *assertedIterator) state(a *archive) {
	a.int(&it.i)
	it.source.state(a)
}
