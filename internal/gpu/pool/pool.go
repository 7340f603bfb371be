package pool

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/weft-ml/weft/internal/gpu/driver"
)

const (
	// Granule is the unit of allocation in bytes. Drivers align kernels' memory to it.
	Granule = 256
	// firstRegion is the size in bytes of the first region of a pool that grows.
	firstRegion = 2 << 20
	// maxWaste is the size in bytes of a rest that is always split off.
	maxWaste = 128 << 20
	// DefaultRetry is how long TensorFlow waits for others to free memory.
	DefaultRetry = 10 * time.Second
)

// A Source gives and takes regions. Free is called for a region without chunks in use, which may
// still have work queued: it waits for that work. The pool calls it with its lock held.
type Source interface {
	Alloc(size int) (driver.Mem, error)
	Free(m driver.Mem) error
}

// Options are the settings of a pool.
type Options struct {
	Name    string        // allocator's name in errors and statistics, as GPU_0_bfc
	Limit   int64         // bytes of all regions together
	Largest int64         // bytes of the largest region; no limit if 0
	Growth  bool          // begin with a small region, instead of one of Limit bytes
	Retry   time.Duration // longest wait of Alloc for others to free memory
}

// Stats are the statistics of a pool, in bytes unless they say otherwise.
type Stats struct {
	Allocs       int64 // number of allocations so far
	InUse        int64
	PeakInUse    int64
	LargestAlloc int64 // largest allocation so far
	Limit        int64
	Reserved     int64 // in regions
	PeakReserved int64
	LargestFree  int64 // largest free chunk
	Waits        int64 // number of allocations that waited for memory
}

// Pool is an allocator. Its methods may be called concurrently.
type Pool struct {
	source  Source
	options Options

	mu      sync.Mutex
	regions []*chunk // first chunks; guarded by mu
	bins    bins     // guarded by mu
	used    map[place]*chunk
	spare   *chunk        // chunks that are not in use, linked by next; guarded by mu
	region  int64         // size of the next region; guarded by mu
	stats   Stats         // guarded by mu
	freed   chan struct{} // closed by the next Free if there are waiters; guarded by mu
}

// place is where a chunk begins.
type place struct {
	base uintptr
	off  int
}

// chunk is a part of a region.
type chunk struct {
	mem        driver.Mem
	asked      int // bytes that its owner asked for; 0 if the chunk is free
	prev, next *chunk
}

// New returns a pool without regions.
func New(source Source, o Options) *Pool {
	o.Limit = o.Limit / Granule * Granule
	if o.Largest <= 0 || o.Largest > o.Limit {
		o.Largest = o.Limit
	}
	o.Largest = o.Largest / Granule * Granule
	p := &Pool{source: source, options: o, used: map[place]*chunk{}, region: o.Limit}
	if o.Growth {
		p.region = min(o.Limit, firstRegion)
	}
	p.stats.Limit = o.Limit
	return p
}

// Name returns the name of the allocator.
func (p *Pool) Name() string { return p.options.Name }

// Alloc returns memory of at least size bytes; Size of the result is size. If there is none, it
// waits until others free enough, at most the time of the options or until ctx ends. The error
// wraps [driver.ErrOutOfMemory], or is that of ctx.
func (p *Pool) Alloc(ctx context.Context, size int) (driver.Mem, error) {
	m, wait, err := p.try(size)
	if err == nil || wait == nil {
		return m, err
	}
	p.mu.Lock()
	p.stats.Waits++
	p.mu.Unlock()
	timer := time.NewTimer(p.options.Retry)
	defer timer.Stop()
	for {
		select {
		case <-wait:
		case <-timer.C:
			return m, err
		case <-ctx.Done():
			return m, context.Cause(ctx)
		}
		if m, wait, err = p.try(size); err == nil || wait == nil {
			return m, err
		}
	}
}

// TryAlloc is Alloc without a wait.
func (p *Pool) TryAlloc(size int) (driver.Mem, error) {
	m, _, err := p.try(size)
	return m, err
}

// try allocates. If there is no memory, it returns a channel that is closed when some becomes free,
// or nil if the size can never be had.
func (p *Pool) try(size int) (driver.Mem, <-chan struct{}, error) {
	if size <= 0 {
		if size == 0 {
			return driver.Mem{}, nil, nil
		}
		return driver.Mem{}, nil, fmt.Errorf("pool %s: allocation of %d bytes", p.options.Name, size)
	}
	if int64(size) > p.options.Largest {
		return driver.Mem{}, nil, fmt.Errorf("pool %s: %d bytes, of at most %d: %w", p.options.Name, size, p.options.Largest, driver.ErrOutOfMemory)
	}
	rounded := (size + Granule - 1) / Granule * Granule
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.find(rounded)
	if c == nil && (p.extend(rounded) || p.reclaim(rounded) && p.extend(rounded)) {
		c = p.find(rounded)
	}
	if c == nil {
		err := fmt.Errorf("pool %s: %d bytes: %d of %d are in use, the largest free piece has %d: %w", p.options.Name, size,
			p.stats.InUse, p.options.Limit, p.bins.largest(), driver.ErrOutOfMemory)
		if p.options.Retry <= 0 {
			return driver.Mem{}, nil, err
		}
		if p.freed == nil {
			p.freed = make(chan struct{})
		}
		return driver.Mem{}, p.freed, err
	}
	c.asked = size
	p.used[place{c.mem.Base, c.mem.Off}] = c
	p.stats.Allocs++
	p.stats.InUse += int64(c.mem.Size)
	p.stats.PeakInUse = max(p.stats.PeakInUse, p.stats.InUse)
	p.stats.LargestAlloc = max(p.stats.LargestAlloc, int64(c.mem.Size))
	return c.mem.Slice(0, size), nil, nil
}

// find takes the best free chunk out of the bins, and splits it. It returns nil if no chunk is
// large enough.
func (p *Pool) find(rounded int) *chunk {
	c := p.bins.take(rounded)
	if c == nil {
		return nil
	}
	if rest := c.mem.Size - rounded; rest >= rounded || rest >= maxWaste {
		tail := p.newChunk(c.mem.Slice(rounded, rest))
		c.mem.Size = rounded
		tail.prev, tail.next = c, c.next
		if c.next != nil {
			c.next.prev = tail
		}
		c.next = tail
		p.bins.put(tail)
	}
	return c
}

// extend adds a region in which a chunk of the size has room. It reports whether it did.
func (p *Pool) extend(rounded int) bool {
	available := (p.options.Limit - p.stats.Reserved) / Granule * Granule
	if int64(rounded) > available {
		return false
	}
	grown := false
	for p.region < int64(rounded) {
		p.region *= 2
		grown = true
	}
	size := min(p.region, available, p.options.Largest)
	mem, err := p.source.Alloc(int(size))
	for err != nil { // less may be there
		less := (size*9/10 + Granule - 1) / Granule * Granule
		if size = min(less, size-Granule); size < int64(rounded) {
			return false
		}
		mem, err = p.source.Alloc(int(size))
	}
	if !grown {
		p.region *= 2
	}
	p.stats.Reserved += int64(mem.Size)
	p.stats.PeakReserved = max(p.stats.PeakReserved, p.stats.Reserved)
	c := p.newChunk(mem)
	p.regions = append(p.regions, c)
	p.bins.put(c)
	return true
}

// reclaim gives regions without used chunks back to the source, if a region of the size can then be
// had. It reports whether it did.
func (p *Pool) reclaim(rounded int) bool {
	var unused int64
	for _, c := range p.regions {
		if c.asked == 0 && c.next == nil {
			unused += int64(c.mem.Size)
		}
	}
	if unused == 0 || p.options.Limit-p.stats.Reserved+unused < int64(rounded) {
		return false
	}
	p.regions = slices.DeleteFunc(p.regions, func(c *chunk) bool {
		if c.asked > 0 || c.next != nil || p.source.Free(c.mem) != nil {
			return false
		}
		p.stats.Reserved -= int64(c.mem.Size)
		p.bins.remove(c)
		p.drop(c)
		return true
	})
	return true
}

// Free takes memory that Alloc returned. It panics if the memory is free or not of this pool: its
// owner would destroy another's values.
func (p *Pool) Free(m driver.Mem) {
	if m == (driver.Mem{}) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	at := place{m.Base, m.Off}
	c := p.used[at]
	if c == nil {
		panic(fmt.Sprintf("pool %s: Free of %+v, which is not in use", p.options.Name, m))
	}
	delete(p.used, at)
	p.stats.InUse -= int64(c.mem.Size)
	c.asked = 0
	if n := c.next; n != nil && n.asked == 0 {
		p.bins.remove(n)
		p.join(c, n)
	}
	if b := c.prev; b != nil && b.asked == 0 {
		p.bins.remove(b)
		p.join(b, c)
		c = b
	}
	p.bins.put(c)
	if p.freed != nil {
		close(p.freed)
		p.freed = nil
	}
}

// join adds a chunk to its neighbour before it.
func (p *Pool) join(c, n *chunk) {
	c.mem.Size += n.mem.Size
	c.next = n.next
	if n.next != nil {
		n.next.prev = c
	}
	p.drop(n)
}

// newChunk returns a free chunk that is in no bin.
func (p *Pool) newChunk(m driver.Mem) *chunk {
	c := p.spare
	if c == nil {
		return &chunk{mem: m}
	}
	p.spare = c.next
	*c = chunk{mem: m}
	return c
}

func (p *Pool) drop(c *chunk) {
	*c = chunk{next: p.spare}
	p.spare = c
}

// Stats returns the statistics.
func (p *Pool) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.stats
	s.LargestFree = int64(p.bins.largest())
	return s
}

// ResetPeak sets the peak of used memory to what is in use.
func (p *Pool) ResetPeak() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stats.PeakInUse = p.stats.InUse
}

// Close gives all regions to the source. No memory of the pool may be in use.
func (p *Pool) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.used) > 0 {
		return fmt.Errorf("pool %s: Close with %d pieces in use", p.options.Name, len(p.used))
	}
	var first error
	for _, c := range p.regions {
		if err := p.source.Free(c.mem); err != nil {
			first = cmp.Or(first, err)
		}
		p.bins.remove(c)
	}
	p.regions, p.stats.Reserved = nil, 0
	return first
}
