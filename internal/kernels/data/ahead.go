package data

import (
	"errors"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
)

// errSkipped is the result of a call whose element is not part of the dataset.
var errSkipped = errors.New("element skipped")

// result is an element that is computed asynchronously.
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

// wait blocks until the element is ready and returns it. It fails if the request ends first.
func (p *result) wait(r *run) (element, error) {
	select {
	case <-p.ended:
		return p.value, p.err
	case <-r.ctx.Context().Done():
		return nil, r.cancelled()
	}
}

// isReady reports whether the element or the error is known.
func (p *result) isReady() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// nextGuarded returns the next element of an iterator, for a goroutine of this package: a panic
// becomes an error.
func nextGuarded(it iterator, r *run) (e element, err error) {
	err = guarded(func() (err error) {
		e, err = it.next(r)
		return err
	})
	return e, err
}

// ready returns a result that is complete.
func ready(e element, err error) *result {
	p := newResult()
	p.set(e, err)
	return p
}

const (
	// resultMemory is about the memory of a result and of its place in a buffer, in bytes.
	resultMemory = 300
	// componentMemory is about the memory of a small component, in bytes. Larger ones ask for their
	// own.
	componentMemory = 100
)

// goroutineMemory is about the memory of a goroutine that reads a dataset, in bytes.
const goroutineMemory = 8 << 10

// takeGoroutines asks for the memory of n goroutines: there are exponentially many iterators of a
// dataset that has others twice, each with goroutines of its own.
func takeGoroutines(n int) error {
	if !membudget.TakeRecord(goroutineMemory * int64(n)) {
		return status.ResourceExhaustedf("There is not enough memory to read datasets ahead of requests (--memory-limit).")
	}
	return nil
}

// buffered is ready for a buffer that is filled ahead of requests, whose size a client chooses. If
// there is no memory for the element, the result is an error.
func buffered(e element, err error) *result {
	if err == nil && !membudget.Take(resultMemory+componentMemory*int64(len(e))) {
		e.release()
		e, err = nil, status.ResourceExhaustedf("There is not enough memory for elements ahead of requests (--memory-limit).")
	}
	return ready(e, err)
}

// archiveResults waits for all results and saves or loads their elements. It does not save errors
// and skipped elements.
func archiveResults(a *archive, all *[]*result) {
	var values []element
	for _, p := range *all {
		if e, err := p.wait(a.run); err == nil {
			//sizedmake:ok elements that are held
			values = append(values, e)
		} else if !errors.Is(err, errEnd) && !errors.Is(err, errSkipped) {
			a.fail(err)
		}
	}
	a.elements(&values)
	if a.loading {
		*all = nil
		for _, e := range values {
			*all = append(*all, ready(e, nil))
		}
	}
}

// signal wakes one waiting goroutine. A notification that precedes the wait is not lost.
type signal chan struct{}

func newSignal() signal { return make(signal, 1) }

func (s signal) notify() {
	select {
	case s <- struct{}{}:
	default:
	}
}

// wait waits for a notification; it fails if the request ends first.
func (s signal) wait(r *run) error {
	select {
	case <-s:
		return nil
	case <-r.ctx.Context().Done():
		return r.cancelled()
	}
}
