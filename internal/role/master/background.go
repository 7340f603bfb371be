package master

import "sync"

// background is what goes on beside requests: cleanups, plans that are made, sessions that are
// closed. The master that is closed waits for it.
type background struct {
	wg sync.WaitGroup

	mu   sync.Mutex
	over bool // guarded by mu; nobody waits any more for what is started
}

// Go starts f. What a request starts while the master is being closed ends by itself, with the
// master's context.
func (b *background) Go(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over {
		go f()
		return
	}
	b.wg.Go(f)
}

// enter says that something goes on that has no goroutine of its own, until leave is called.
func (b *background) enter() (leave func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over {
		return func() {}
	}
	b.wg.Add(1)
	return b.wg.Done
}

// wait waits for everything that was started before.
func (b *background) wait() {
	b.mu.Lock()
	b.over = true
	b.mu.Unlock()
	b.wg.Wait()
}
