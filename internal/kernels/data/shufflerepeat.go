package data

import (
	"errors"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
)

func init() {
	doc := "Creates a dataset that shuffles and repeats its input, count times or forever. The buffer may hold elements of several repetitions."
	in := []string{"buffer_size: int64", "seed: int64", "seed2: int64", "count: int64"}
	reshuffle := "reshuffle_each_iteration: bool = true"
	registerStage("ShuffleAndRepeatDataset", doc, in, append(withSpec(), reshuffle, metadata), newShuffleAndRepeat)
	registerStage("ShuffleAndRepeatDatasetV2", doc, append(in[:4:4], "seed_generator: resource"), append([]string{reshuffle}, withSpecAndMetadata()...), newShuffleAndRepeat)
}

// shuffleAndRepeatDataset reads the next round into the buffer while the buffer holds elements of
// the preceding one.
type shuffleAndRepeatDataset struct {
	repeatDataset
	size  int64
	seeds *seeds
}

func newShuffleAndRepeat(n *node, ctx *kernel.Context, s stage) (dataset, error) {
	size, err := bufferSize(n, ctx)
	if err != nil {
		return nil, err
	}
	from, err := n.seeds(ctx, "reshuffle_each_iteration")
	if err != nil {
		return nil, err
	}
	count, err := scalar[int64](n, ctx, "count")
	if err != nil {
		return nil, err
	}
	if count <= 0 && count != -1 {
		return nil, status.InvalidArgumentf("count must be greater than zero or equal to -1.")
	}
	return &shuffleAndRepeatDataset{repeatDataset{s, count}, size, from}, nil
}

func (d *shuffleAndRepeatDataset) iterate(*run) (iterator, error) {
	return &shuffleAndRepeatIterator{d: d}, nil
}

type shuffleAndRepeatIterator struct {
	d      *shuffleAndRepeatDataset
	random stream
	// the buffer: remaining elements of each round, the oldest round first, in TensorFlow's order
	rounds     [][]element
	polls      polls
	n          int64    // number of elements in the buffer
	started    int64    // number of rounds started
	gotElement bool     // an element has been read
	input      iterator // nil between rounds
}

func (it *shuffleAndRepeatIterator) next(r *run) (element, error) {
	if err := it.fill(r); err != nil {
		return nil, err
	}
	if it.n == 0 {
		return nil, errEnd
	}
	for len(it.rounds[0]) == 0 {
		it.rounds, it.random = it.rounds[1:], it.d.seeds.next()
	}
	first := it.rounds[0]
	i := int64(it.random.next()) % int64(len(first))
	e := first[i]
	first[i], first[0] = first[0], nil
	it.rounds[0] = first[1:]
	it.n--
	return e, nil
}

// maxRounds is the maximum number of rounds in the buffer.
const maxRounds = 3

// fill reads until the buffer is full or the last round ends.
func (it *shuffleAndRepeatIterator) fill(r *run) error {
	for it.n < it.d.size && (it.input != nil || it.d.n < 0 || it.started < it.d.n) && (it.n == 0 || len(it.rounds) <= maxRounds) {
		if it.input == nil {
			var err error
			if it.input, err = open(r, it.d.input); err != nil {
				return err
			}
			if it.started == 0 {
				it.random = it.d.seeds.next()
			}
			it.rounds = membudget.Append(it.rounds, nil)
			it.started++
		}
		if err := it.polls.check(r); err != nil {
			return err
		}
		e, err := it.input.next(r)
		switch {
		case err == nil:
			last := len(it.rounds) - 1
			it.rounds[last] = membudget.Append(it.rounds[last], e)
			it.gotElement = true
			it.n++
		case !errors.Is(err, errEnd):
			return err
		default:
			it.input = nil
			if !it.gotElement && it.d.n < 0 { // otherwise the loop would not end
				return nil
			}
		}
	}
	return nil
}

func (it *shuffleAndRepeatIterator) state(a *archive) {
	a.int(&it.started)
	a.bool(&it.gotElement)
	it.random.state(a)
	it.d.seeds.state(a)
	n := a.count(len(it.rounds))
	if a.loading {
		it.rounds, it.n = membudget.Make[[]element](n), 0
	}
	for i := range n {
		a.elements(&it.rounds[i])
		if a.loading {
			it.n += int64(len(it.rounds[i]))
		}
	}
	a.iterator(&it.input, func() (iterator, error) { return open(a.run, it.d.input) })
}
