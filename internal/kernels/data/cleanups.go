package data

import "sync"

// cleanups holds the cleanup functions of one iteration, such as closing files. They run when the
// iterator is closed or reset.
type cleanups struct {
	mu   sync.Mutex
	last int            // guarded by mu
	all  map[int]func() // guarded by mu
}

// add registers f to run at the end. cancel removes it.
func (e *cleanups) add(f func()) (cancel func()) {
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

// run calls the registered functions, once each.
func (e *cleanups) run() {
	e.mu.Lock()
	all := e.all
	e.all = nil
	e.mu.Unlock()
	for _, f := range all {
		f()
	}
}
