package data

import (
	"errors"
	"math"
	"math/rand/v2"
	"sync"

	"github.com/weft-ml/weft/internal/numeric/philox"
	"github.com/weft-ml/weft/internal/opkit/resource"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
)

func init() {
	doc := "Creates a dataset that shuffles the elements of its input with a buffer."
	reshuffle := "reshuffle_each_iteration: bool = true"
	registerStage("ShuffleDataset", doc, []string{"buffer_size: int64", "seed: int64", "seed2: int64"}, withSpecAndMetadata(reshuffle), newShuffle)
	registerStage("ShuffleDatasetV2", doc, []string{"buffer_size: int64", "seed_generator: resource"}, withSpecAndMetadata(), newSharedShuffle)
	registerStage("ShuffleDatasetV3", doc,
		[]string{"buffer_size: int64", "seed: int64", "seed2: int64", "seed_generator: resource"}, withSpecAndMetadata(reshuffle), newShuffle)
}

// shuffleDataset draws each element at random from a buffer.
type shuffleDataset struct {
	stage
	size  int64
	seeds *seeds
	order order
}

// order is a random order of all elements of a dataset, drawn at the first random access.
type order struct {
	mu     sync.Mutex
	places []int64 // guarded by mu; nil before it is drawn
}

func bufferSize(n *node, ctx *kernel.Context) (int64, error) {
	size, err := scalar[int64](n, ctx, "buffer_size")
	if err != nil {
		return 0, err
	}
	if size == unknown {
		return math.MaxInt64, nil
	}
	if size <= 0 {
		return 0, status.InvalidArgumentf("buffer_size must be greater than zero or UNKNOWN_CARDINALITY")
	}
	return size, nil
}

func newShuffle(n *node, ctx *kernel.Context, s stage) (dataset, error) {
	size, err := bufferSize(n, ctx)
	if err != nil {
		return nil, err
	}
	from, err := n.seeds(ctx, "reshuffle_each_iteration")
	return &shuffleDataset{stage: s, size: size, seeds: from}, err
}

func newSharedShuffle(n *node, ctx *kernel.Context, s stage) (dataset, error) {
	size, err := bufferSize(n, ctx)
	if err != nil {
		return nil, err
	}
	shared, err := resource.Find[*seeds](ctx, 2)
	if status.CodeOf(err) == status.NotFound { // each iteration has its own order
		shared, err = newSeeds(0, 0, true), nil
	}
	return &shuffleDataset{stage: s, size: size, seeds: shared}, err
}

func (d *shuffleDataset) iterate(r *run) (iterator, error) {
	src, err := d.begin(r)
	if err != nil {
		return nil, err
	}
	return &shuffleIterator{source: src, d: d, random: d.seeds.next()}, nil
}

// at returns element i in an order of all elements, independent of the size of the buffer. It
// differs from the order of iterations.
func (d *shuffleDataset) at(r *run, i int64) (element, error) {
	n := d.input.cardinality()
	if n < 0 {
		return elementByIterating(r, d, i)
	}
	places, err := d.places(r, n)
	if err != nil {
		return nil, err
	}
	return atIndex(r, d.input, places[i])
}

// places returns the order of n elements. Steps that ask for the first time draw it at the same
// time: that may take minutes, and none waits for another one, whose step may end.
func (d *shuffleDataset) places(r *run, n int64) ([]int64, error) {
	d.order.mu.Lock()
	places := d.order.places
	d.order.mu.Unlock()
	if places != nil {
		return places, nil
	}
	places = membudget.Make[int64](n)
	for k := range places {
		places[k] = int64(k)
	}
	from := newStream(d.seeds.seed, d.seeds.seed2)
	for k := range n {
		if k%placesBetween == 0 {
			if err := r.cancelled(); err != nil {
				return nil, err
			}
		}
		j := k + int64(from.next())%(n-k)
		places[j], places[k] = places[k], places[j]
	}
	d.order.mu.Lock()
	defer d.order.mu.Unlock()
	d.order.places = places
	return places, nil
}

// placesBetween is the number of places that are drawn between two looks at the step.
const placesBetween = 1 << 16

type shuffleIterator struct {
	source
	d      *shuffleDataset
	random stream
	// in TensorFlow's order: the first element moves to the place of a removed one
	buffer    []element
	exhausted bool
}

func (it *shuffleIterator) next(r *run) (element, error) {
	for !it.exhausted && int64(len(it.buffer)) < it.d.size {
		e, err := it.pull(r)
		if errors.Is(err, errEnd) {
			it.exhausted = true
			break
		}
		if err != nil {
			return nil, err
		}
		it.buffer = membudget.Append(it.buffer, e)
	}
	if len(it.buffer) == 0 {
		return nil, errEnd
	}
	i := int64(it.random.next()) % int64(len(it.buffer))
	e := it.buffer[i]
	it.buffer[i] = it.buffer[0]
	it.buffer[0] = nil
	it.buffer = it.buffer[1:]
	return e, nil
}

func (it *shuffleIterator) state(a *archive) {
	a.elements(&it.buffer)
	a.bool(&it.exhausted)
	it.random.state(a)
	it.d.seeds.state(a)
	it.source.state(a)
}

// stream is a partly used stream of random numbers.
type stream struct {
	seed, seed2, used int64
	from              philox.Generator
	out               [4]uint32
}

func newStream(seed, seed2 int64) stream {
	return stream{seed: seed, seed2: seed2, from: philox.New(uint64(seed), uint64(seed2))}
}

func (s *stream) next() uint32 {
	if s.used%4 == 0 {
		s.out = s.from.Next()
	}
	s.used++
	return s.out[(s.used-1)%4]
}

func (s *stream) state(a *archive) {
	a.int(&s.seed)
	a.int(&s.seed2)
	a.int(&s.used)
	if !a.loading {
		return
	}
	used := s.used
	*s = newStream(s.seed, s.seed2)
	s.from.Skip(uint64(used / 4))
	if used%4 != 0 {
		s.out = s.from.Next()
	}
	s.used = used
}

// resolveSeeds replaces a pair of zero seeds by random seeds.
func resolveSeeds(seed, seed2 int64) (int64, int64) {
	if seed == 0 && seed2 == 0 {
		return rand.Int64(), rand.Int64()
	}
	return seed, seed2
}
