package data

import "sync"

// ending is what must be done when the life of an iterator ends, before the next begins: files are
// closed.
type ending struct {
	mu   sync.Mutex
	last int            // guarded by mu
	all  map[int]func() // guarded by mu
}

// add has f called at the end, unless it is called off before.
func (e *ending) add(f func()) (callOff func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.all == nil {
		e.all = map[int]func(){}
	}
	e.last++
	id := e.last
	e.all[id] = f
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.all, id)
	}
}

// run does it, once.
func (e *ending) run() {
	e.mu.Lock()
	all := e.all
	e.all = nil
	e.mu.Unlock()
	for _, f := range all {
		f()
	}
}
