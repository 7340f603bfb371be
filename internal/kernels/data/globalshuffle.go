package data

import (
	"reflect"
	"strings"

	"github.com/weft-ml/weft/internal/numeric/indexshuffle"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
)

func init() {
	registerStage("GlobalShuffleDataset",
		"Creates a dataset that shuffles the whole input without a buffer. The input must support random access.",
		[]string{"seed: int64", "seed2: int64", "seed_generator: resource"}, withSpecAndMetadata("reshuffle_each_iteration: bool = true"), newGlobalShuffle)
}

// globalShuffleDataset returns the elements of its input in the order of a random permutation of
// the indices.
type globalShuffleDataset struct {
	stage
	seeds *seeds
}

func newGlobalShuffle(n *node, ctx *kernel.Context, s stage) (dataset, error) {
	if err := checkRandomAccess(s.input, map[dataset]bool{}); err != nil {
		return nil, status.FailedPreconditionf(
			"`global_shuffle` requires all upstream transformations be compatible with random access. Got: FAILED_PRECONDITION: %v", err)
	}
	if size := s.input.cardinality(); size <= 0 {
		return nil, status.InvalidArgumentf(
			"`global_shuffle` requires the input dataset to have a non-empty finite cardinality. Got cardinality %d for dataset %sOp::Dataset",
			size, kindOf(s.input))
	}
	from, err := n.seeds(ctx, "reshuffle_each_iteration")
	return &globalShuffleDataset{s, from}, err
}

// kindOf returns the kind of a dataset, such as FilterDataset.
func kindOf(d dataset) string {
	name := reflect.TypeOf(d).Elem().Name()
	return strings.ToUpper(name[:1]) + name[1:]
}

// checkRandomAccess returns an error if a dataset does not support random access. seen has the
// datasets that do.
func checkRandomAccess(d dataset, seen map[dataset]bool) error {
	if seen[d] {
		return nil
	}
	seen[d] = true
	_, ok := d.(indexed)
	switch d.(type) {
	case *shuffleDataset, *unbatchDataset: // they support at, but not global shuffling
		ok = false
	}
	if !ok {
		return status.FailedPreconditionf("%s does not support random access.", kindOf(d))
	}
	switch d := d.(type) {
	case *batchDataset:
		if !d.dropRemainder {
			return status.FailedPreconditionf("%s does not support global shuffling with `drop_remainder=False`.", kindOf(d))
		}
	case *repeatDataset:
		if d.n <= 0 {
			return status.FailedPreconditionf("`repeat(%d)` does not support random access of tf.data datasets.", d.n)
		}
	case *skipDataset:
		if d.n < 0 {
			return status.FailedPreconditionf("Global shuffling does not support empty dataset or skipping the entire dataset. Got skip(%d).", d.n)
		}
	}
	for _, input := range inputsOf(d) {
		if err := checkRandomAccess(input, seen); err != nil {
			return err
		}
	}
	return nil
}

func (d *globalShuffleDataset) iterate(*run) (iterator, error) {
	it := &globalShuffleIterator{d: d, n: d.cardinality()}
	it.seed[0], it.seed[1] = d.seeds.pair()
	it.seed[2], _ = d.seeds.pair()
	return it, nil
}

type globalShuffleIterator struct {
	d    *globalShuffleDataset
	seed [3]int64
	i, n int64
}

// shuffleRounds is the number of rounds of TensorFlow's permutation.
const shuffleRounds = 8

func (it *globalShuffleIterator) next(r *run) (element, error) {
	if it.i >= it.n {
		return nil, errEnd
	}
	key := [3]uint32{uint32(it.seed[0]), uint32(it.seed[1]), uint32(it.seed[2])}
	at := indexshuffle.Index(uint64(it.i), uint64(it.n-1), key, shuffleRounds)
	it.i++
	return atIndex(r, it.d.input, int64(at))
}

func (it *globalShuffleIterator) state(a *archive) {
	a.int(&it.i)
	for k := range it.seed {
		a.int(&it.seed[k])
	}
}
