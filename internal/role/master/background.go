package master

import "sync"

// background is the group of goroutines that outlive requests: cleanups, plans that are being made,
// sessions that are being closed. Close of the master waits for them.
type background struct {
	wg sync.WaitGroup

	mu     sync.Mutex
	closed bool // guarded by mu; wait has been called
}

// Go starts f. If wait has been called, nothing waits for f, which must end with the master's
// context.
func (b *background) Go(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		go f()
		return
	}
	b.wg.Go(f)
}

// enter registers work without a goroutine of its own. It lasts until leave is called.
func (b *background) enter() (leave func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return func() {}
	}
	b.wg.Add(1)
	return b.wg.Done
}

// wait waits for all work that was started before.
func (b *background) wait() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.wg.Wait()
}
