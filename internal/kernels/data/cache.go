package data

import (
	"errors"
	"sync"

	"github.com/weft-ml/weft/internal/opkit/resource"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
)

func init() {
	doc := "Creates a dataset that caches the elements of its input during the first iteration."
	registerStageOf(opdef.FilesWrite, "CacheDataset", doc, []string{"filename: string"}, withSpecAndMetadata(), newCache)
	registerStageOf(opdef.FilesWrite, "CacheDatasetV2", doc, []string{"filename: string", "cache: resource"}, withSpecAndMetadata(), newCache)
}

// cache holds all elements of a dataset after an iteration has reached the end.
type cache struct {
	mu   sync.Mutex
	full bool      // guarded by mu
	all  []element // guarded by mu; not modified once full

	byIndex map[int64]element // guarded by mu; elements that at has read
	meter   membudget.Meter   // guarded by mu; of byIndex
}

// TypeName returns TensorFlow's name of the resource.
func (*cache) TypeName() string { return "N10tensorflow4data18MemoryCacheManagerE" }

func (c *cache) get() ([]element, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all, c.full
}

func (c *cache) put(all []element) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.full {
		c.all, c.full = all, true
	}
}

type cacheDataset struct {
	stage
	*cache
}

func newCache(n *node, ctx *kernel.Context, s stage) (dataset, error) {
	file, err := scalar[string](n, ctx, "filename")
	if err != nil {
		return nil, err
	}
	if file != "" {
		return &fileCacheDataset{s, n.Files(), file}, nil
	}
	d := &cacheDataset{s, &cache{}}
	if len(n.Inputs) > 2 {
		if shared, err := resource.Find[*cache](ctx, 2); err == nil {
			d.cache = shared
		}
	}
	return d, nil
}

// at returns element i and caches it, separately from the elements of iterations.
func (d *cacheDataset) at(r *run, i int64) (element, error) {
	if all, full := d.get(); full {
		if i >= int64(len(all)) {
			return nil, status.OutOfRangef("Index out of range [0, %d):%d", len(all), i)
		}
		return all[i].retain(), nil
	}
	d.mu.Lock()
	e, ok := d.byIndex[i]
	d.mu.Unlock()
	if ok {
		return e.retain(), nil
	}
	e, err := atIndex(r, d.input, i)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.byIndex == nil {
		d.byIndex = map[int64]element{}
	}
	if kept, ok := d.byIndex[i]; ok { // cached by another step in the meantime
		e.release()
		return kept.retain(), nil
	}
	d.meter.MustTakeEntry(32)
	d.byIndex[i] = e
	return e.retain(), nil
}

func (d *cacheDataset) iterate(*run) (iterator, error) { return &cacheIterator{d: d}, nil }

// cacheIterator reads the cache if it is full at the first request, and the dataset otherwise.
type cacheIterator struct {
	d     *cacheDataset
	input iterator // nil before the first request and while reading the cache
	all   []element
	full  bool
	i     int64 // index of the next element in a full cache
}

func (it *cacheIterator) next(r *run) (element, error) {
	if it.input == nil && !it.full {
		if it.all, it.full = it.d.get(); !it.full {
			var err error
			if it.input, err = open(r, it.d.input); err != nil {
				return nil, err
			}
		}
	}
	if it.full {
		if it.i >= int64(len(it.all)) {
			return nil, errEnd
		}
		it.i++
		return it.all[it.i-1].retain(), nil
	}
	e, err := it.input.next(r)
	switch {
	case err == nil:
		it.all = membudget.Append(it.all, e.retain())
	case errors.Is(err, errEnd):
		it.d.put(it.all)
		it.input, it.full, it.i = nil, true, int64(len(it.all))
	}
	return e, err
}

func (it *cacheIterator) state(a *archive) {
	a.bool(&it.full)
	a.int(&it.i)
	a.elements(&it.all)
	a.iterator(&it.input, func() (iterator, error) { return open(a.run, it.d.input) })
	if a.loading && it.full {
		it.d.put(it.all)
	}
	if it.i < 0 {
		a.fail(status.InvalidArgumentf("the saved state of the iterator has an invalid index: %d", it.i))
	}
}
