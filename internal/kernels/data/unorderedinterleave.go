package data

import (
	"errors"
	"slices"
	"sync"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
)

// unorderedInterleave returns elements from any lane that has one ready, up to a block from one
// lane before it advances to the next. Its goroutines read ahead: one reads the input to fill free
// lanes, and up to parallel.calls workers each read one lane until its buffer is full or its
// dataset ends or fails. Requests start the goroutines, which end without waiting for a request.
type unorderedInterleave struct {
	source
	d       *interleaveDataset
	changed signal // signalled after each change of the fields below

	mu        sync.Mutex
	lanes     []*aheadLane // nil where free; guarded by mu
	current   int64        // index of the current lane; guarded by mu
	taken     int64        // number of elements taken from the current block; guarded by mu
	scan      int          // index of the lane from which the search for work starts; guarded by mu
	workers   int          // number of goroutines that read lanes; guarded by mu
	reading   bool         // a goroutine reads the input; guarded by mu
	exhausted bool         // the input is exhausted; guarded by mu
}

// aheadLane is a dataset that is read ahead. While the lane is busy, only its worker uses at. The
// mutex of the iterator guards the other fields.
type aheadLane struct {
	from    element   // input of the function that creates the dataset
	at      iterator  // nil before the first read and after the end
	results []*result // elements and errors that are ready
	busy    bool      // a worker reads the lane
	ended   bool      // no more results will come
}

func (it *unorderedInterleave) next(r *run) (element, error) {
	for {
		it.mu.Lock()
		p := it.take()
		end := p == nil && it.exhausted && !slices.ContainsFunc(it.lanes, func(l *aheadLane) bool { return l != nil })
		it.start(r)
		it.mu.Unlock()
		switch {
		case p != nil:
			return p.value, p.err
		case end:
			return nil, errEnd
		}
		if err := it.changed.wait(r); err != nil {
			return nil, err
		}
	}
}

// take removes and returns a result of the current lane, or of the first lane after it that has
// one; nil if none has. The caller holds mu.
func (it *unorderedInterleave) take() *result {
	for range it.lanes {
		l := it.lanes[it.current]
		if l == nil || len(l.results) == 0 {
			it.pass()
			continue
		}
		p := l.results[0]
		l.results = slices.Delete(l.results, 0, 1)
		if it.taken++; it.taken == it.d.block {
			it.pass()
		}
		it.free(l)
		return p
	}
	return nil
}

// pass advances to the next lane. The caller holds mu.
func (it *unorderedInterleave) pass() {
	it.taken = 0
	it.current = (it.current + 1) % int64(len(it.lanes))
}

// free frees the lane l if it has ended. The caller holds mu.
func (it *unorderedInterleave) free(l *aheadLane) {
	if !l.ended || len(l.results) > 0 {
		return
	}
	l.from.release()
	i := slices.Index(it.lanes, l)
	it.lanes[i] = nil
	if it.current == int64(i) {
		it.pass()
	}
}

// start starts the goroutines that have work. The caller holds mu.
func (it *unorderedInterleave) start(r *run) {
	if !it.exhausted && !it.reading && it.hasRoom() {
		it.reading = true
		go it.readInput(r.ahead())
	}
	for range it.lanes {
		if it.workers >= it.d.parallel.calls {
			return
		}
		it.scan = (it.scan + 1) % len(it.lanes)
		l := it.lanes[it.scan]
		if l != nil && !l.busy && !l.ended && len(l.results) < it.d.parallel.buffer {
			l.busy = true
			it.workers++
			go it.readLane(r.ahead(), l)
		}
	}
}

// hasRoom reports whether another lane may be opened. The caller holds mu.
func (it *unorderedInterleave) hasRoom() bool {
	return int64(len(it.lanes)) < min(it.d.cycle, maxCalls) || slices.Contains(it.lanes, nil)
}

// readInput opens lanes until none is free, or the input ends or fails.
func (it *unorderedInterleave) readInput(r *run) {
	for more := true; more; {
		e, err := nextGuarded(it.input, r)
		it.mu.Lock()
		switch {
		case errors.Is(err, errEnd):
			it.exhausted = true
		case err != nil:
			it.open(&aheadLane{results: []*result{ready(nil, err)}, ended: true})
		default:
			it.open(&aheadLane{from: e})
		}
		more = err == nil && it.hasRoom() && r.lifetime.Err() == nil
		it.reading = more
		it.mu.Unlock()
		it.changed.notify()
	}
}

// open stores a lane in the first free place. The caller holds mu.
func (it *unorderedInterleave) open(l *aheadLane) {
	if i := slices.Index(it.lanes, nil); i >= 0 {
		it.lanes[i] = l
		return
	}
	it.lanes = append(it.lanes, l)
}

// readLane fills the buffer of a lane.
func (it *unorderedInterleave) readLane(r *run, l *aheadLane) {
	for more := true; more; {
		e, err := it.read(r, l)
		it.mu.Lock()
		if !errors.Is(err, errEnd) {
			l.results = append(l.results, ready(e, err))
		}
		more = err == nil && len(l.results) < it.d.parallel.buffer && r.lifetime.Err() == nil
		if !more {
			l.busy = false
			it.workers--
		}
		if errors.Is(err, errEnd) || l.at == nil {
			l.ended, l.at = true, nil
			it.free(l)
		}
		it.mu.Unlock()
		it.changed.notify()
	}
}

// read returns the next element of a lane. If its dataset cannot be created, l.at stays nil.
func (it *unorderedInterleave) read(r *run, l *aheadLane) (e element, err error) {
	err = guarded(func() error {
		if l.at == nil {
			at, err := it.d.f.iterate(r, l.from.retain())
			if err != nil {
				return err
			}
			l.at = at
		}
		e, err = l.at.next(r)
		return err
	})
	return e, err
}

// state waits until the goroutines have ended.
func (it *unorderedInterleave) state(a *archive) {
	it.mu.Lock()
	for it.reading || it.workers > 0 {
		it.mu.Unlock()
		if err := it.changed.wait(a.run); err != nil {
			a.fail(err)
			return
		}
		it.mu.Lock()
	}
	defer it.mu.Unlock()
	it.source.state(a)
	a.bool(&it.exhausted)
	a.int(&it.current)
	a.int(&it.taken)
	n := a.count(len(it.lanes))
	if a.loading {
		it.lanes = membudget.Make[*aheadLane](n)
		if it.current < 0 || it.current > 0 && it.current >= int64(n) {
			a.fail(status.InvalidArgumentf("the saved state of the iterator does not match the dataset"))
		}
	}
	for i := range it.lanes {
		it.laneState(a, i)
	}
}

func (it *unorderedInterleave) laneState(a *archive, i int) {
	l := it.lanes[i]
	present := l != nil
	a.bool(&present)
	if !present || a.err != nil {
		return
	}
	if a.loading {
		l = &aheadLane{}
		it.lanes[i] = l
	}
	a.element(&l.from)
	archiveResults(a, &l.results)
	a.bool(&l.ended)
	a.iterator(&l.at, func() (iterator, error) { return it.d.f.iterate(a.run, l.from.retain()) })
	if a.loading {
		it.free(l)
	}
}
