package data

import (
	"errors"
	"sync"
)

// result is an element on its way.
type result struct {
	ended chan struct{} // closed after the other fields are written
	value element
	err   error
}

func newResult() *result { return &result{ended: make(chan struct{})} }

func (p *result) set(e element, err error) {
	p.value, p.err = e, err
	close(p.ended)
}

// wait returns the element when it is there, or why the request ends before.
func (p *result) wait(r *run) (element, error) {
	select {
	case <-p.ended:
		return p.value, p.err
	case <-r.ctx.Context().Done():
		return nil, r.cancelled()
	}
}

// ready returns a result that is there already.
func ready(e element, err error) *result {
	p := newResult()
	p.set(e, err)
	return p
}

// queue holds results in the order in which they are given, for the archive as well.
type queue struct {
	mu  sync.Mutex
	all []*result // guarded by mu
}

func (q *queue) push(p *result) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.all = append(q.all, p)
}

func (q *queue) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.all)
}

// pop waits for the first result and removes it, unless the request ends before.
func (q *queue) pop(r *run) (element, error) {
	q.mu.Lock()
	p := q.all[0]
	q.mu.Unlock()
	e, err := p.wait(r)
	select {
	case <-p.ended:
	default:
		return nil, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.all[0] = nil
	q.all = q.all[1:]
	return e, err
}

// state waits for all results and carries their elements. An error is not saved: what failed is
// asked for again.
func (q *queue) state(a *archive) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var values []element
	for _, p := range q.all {
		if e, err := p.wait(a.run); err == nil {
			values = append(values, e)
		} else if !errors.Is(err, errEnd) {
			a.fail(err)
		}
	}
	a.elements(&values)
	if a.loading {
		q.all = nil
		for _, e := range values {
			q.all = append(q.all, ready(e, nil))
		}
	}
}
