package parallel

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// active is the pool of the process, because the cores are the process's. It is created by the
// first loop that can use it.
var active atomic.Pointer[pool]

// current returns the pool of the process.
func current() *pool {
	if p := active.Load(); p != nil {
		return p
	}
	p := newPool(runtime.GOMAXPROCS(0) - 1)
	if !active.CompareAndSwap(nil, p) {
		p.stop()
	}
	return active.Load()
}

// pool is a set of worker goroutines.
type pool struct {
	workers []*worker
	quit    chan struct{}
	running sync.WaitGroup
}

func newPool(workers int) *pool {
	p := &pool{quit: make(chan struct{})}
	for range workers {
		w := &worker{wake: make(chan struct{}, 1)}
		w.slot.Store(idle)
		p.workers = append(p.workers, w)
		p.running.Go(func() { w.run(p.quit) })
	}
	return p
}

// stop ends the workers and waits for them. A loop that has offered its job to one of them revokes
// it.
func (p *pool) stop() {
	close(p.quit)
	p.running.Wait()
}

// run runs a loop of several blocks on the caller and on idle workers.
func (p *pool) run(n, grain int, body Body) {
	j := freeJobs.Get().(*job)
	j.start(n, grain, body)
	defer j.finish()
	want := min(j.blocks-1, len(p.workers))
	var yielder Yielder
	for {
		if len(j.offered) < want {
			p.offer(j, want)
		}
		if !j.runBlock() {
			return
		}
		yielder.MaybeYield()
	}
}

// offer offers a job to idle workers while cores are idle, up to want workers in all.
func (p *pool) offer(j *job, want int) {
	for _, w := range p.workers {
		if len(j.offered) == want || !tryAcquire(len(p.workers)+1) {
			return
		}
		if w.claim(j) {
			j.offered = append(j.offered, w)
		} else {
			Release()
		}
	}
}
