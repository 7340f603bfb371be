package data

import (
	"sync"

	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
)

func init() {
	registerStage("PrefetchDataset", "Creates a dataset that prefetches elements of its input.",
		[]string{"buffer_size: int64"},
		append(withSpec(), "slack_period: int = 0", "legacy_autotune: bool = true", "buffer_size_min: int = 0", metadata), newPrefetch)
}

type prefetchDataset struct {
	stage
	size int64
	node string // name of the node, for statistics
}

// defaultAhead is the buffer size if the program leaves it to the runtime.
const defaultAhead = 2

func newPrefetch(n *node, ctx *kernel.Context, s stage) (dataset, error) {
	size, err := scalar[int64](n, ctx, "buffer_size")
	if err != nil {
		return nil, err
	}
	if size < 0 && size != autotune {
		return nil, status.InvalidArgumentf("buffer_size must be >= 0 or set buffer_size to be -1 for auto-tuning")
	}
	if size == autotune {
		size = defaultAhead
	}
	return &prefetchDataset{s, size, n.Node}, nil
}

func (d *prefetchDataset) iterate(r *run) (iterator, error) {
	src, err := d.begin(r)
	if d.size == 0 || err != nil {
		return src.input, err
	}
	return &prefetchIterator{source: src, d: d}, nil
}

// prefetchIterator fills its buffer on a goroutine. The goroutine ends when the buffer is full, at
// the end or an error of the input, and when the iterator's lifetime ends.
type prefetchIterator struct {
	source
	d *prefetchDataset

	mu     sync.Mutex
	buffer []*result     // guarded by mu
	filled chan struct{} // closed when the goroutine has ended, nil if there is none; guarded by mu
	more   chan struct{} // closed when the buffer has changed; guarded by mu
}

func (it *prefetchIterator) next(r *run) (element, error) {
	for {
		it.mu.Lock()
		if len(it.buffer) > 0 {
			p := it.buffer[0]
			if p.err == nil {
				it.record(r.stats)
			}
			it.buffer = it.buffer[1:]
			_ = it.fill(r) // the request that finds the buffer empty returns the error
			it.mu.Unlock()
			return p.value, p.err
		}
		err := it.fill(r)
		more := it.more
		it.mu.Unlock()
		if err != nil {
			return nil, err
		}
		select {
		case <-more:
		case <-r.ctx.Context().Done():
			return nil, r.cancelled()
		}
	}
}

// record records the state of the buffer before an element leaves it. The caller holds mu.
func (it *prefetchIterator) record(s *recorder) {
	if s == nil {
		return
	}
	size, most := float64(len(it.buffer)), float64(it.d.size)
	s.count(it.d.node+statsDelimiter+"buffer_utilization", size/most)
	s.set(it.d.node+statsDelimiter+"buffer_size", size)
	s.set(it.d.node+statsDelimiter+"buffer_capacity", most)
}

// fill starts the goroutine, unless it is running or the buffer is full. It returns an error if
// there is no memory for it. The caller holds mu.
func (it *prefetchIterator) fill(r *run) error {
	if it.filled != nil || int64(len(it.buffer)) >= it.d.size {
		return nil
	}
	if err := takeGoroutines(1); err != nil {
		return err
	}
	it.filled, it.more = make(chan struct{}), make(chan struct{})
	go it.work(r.ahead(), it.filled)
	return nil
}

func (it *prefetchIterator) work(r *run, filled chan struct{}) {
	defer close(filled)
	for {
		p := buffered(nextGuarded(it.input, r))
		it.mu.Lock()
		//sizedmake:ok elements that are held, which have asked
		it.buffer = append(it.buffer, p)
		close(it.more)
		it.more = make(chan struct{})
		stop := p.err != nil || int64(len(it.buffer)) >= it.d.size || r.lifetime.Err() != nil
		if stop {
			it.filled = nil
		}
		it.mu.Unlock()
		if stop {
			return
		}
	}
}

func (it *prefetchIterator) state(a *archive) {
	it.mu.Lock()
	filled := it.filled
	it.mu.Unlock()
	if filled != nil {
		select {
		case <-filled: // the goroutine has ended, so this one has the input to itself
		case <-a.run.ctx.Context().Done():
			a.fail(a.run.cancelled())
			return
		}
	}
	it.mu.Lock()
	defer it.mu.Unlock()
	archiveResults(a, &it.buffer)
	it.source.state(a)
}
