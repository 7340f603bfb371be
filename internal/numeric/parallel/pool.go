package parallel

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// active is the pool of the process. Its workers start with the first loop that can use them.
var active atomic.Pointer[pool]

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

// stop ends the workers and waits for them. A loop that still offers its job to one of them takes
// it back.
func (p *pool) stop() {
	close(p.quit)
	p.running.Wait()
}

// run works on a loop of several blocks together with workers that are idle.
func (p *pool) run(n, grain int, body Body) {
	j := jobs.Get().(*job)
	j.start(n, grain, body)
	defer j.finish()
	want := min(j.blocks-1, len(p.workers))
	var pace Yielder
	for {
		if len(j.claimed) < want {
			p.offer(j, want)
		}
		if !j.block() {
			return
		}
		pace.MaybeYield()
	}
}

// offer offers a job to idle workers, as long as cores are idle.
func (p *pool) offer(j *job, want int) {
	for _, w := range p.workers {
		if len(j.claimed) == want || !tryAcquire(len(p.workers)+1) {
			return
		}
		if w.claim(j) {
			j.claimed = append(j.claimed, w)
		} else {
			Release()
		}
	}
}
