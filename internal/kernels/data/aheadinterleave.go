package data

import (
	"errors"
	"slices"
	"sync"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
)

// aheadInterleave interleaves lanes that its goroutines read ahead: one reads the input to fill
// free lanes, and up to parallel.calls workers each read one lane until its buffer is full or its
// dataset ends or fails. Requests start the goroutines, which end without waiting for a request.
//
// In any order, it returns elements from any lane that has one ready, up to a block from one lane
// before it advances to the next. In order, it returns what interleaveIterator does. It then waits
// for the current lane, and only a request frees a lane: the next input element goes to the place
// that a reader of one lane at a time would visit next, which is the one that was freed first.
type aheadInterleave struct {
	source
	d       *interleaveDataset
	ordered bool
	changed signal // signalled after each change of the fields below

	mu        sync.Mutex
	lanes     []*aheadLane // nil where free; guarded by mu
	freed     []int        // indexes of the free lanes, by the time of their end; guarded by mu
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

func (it *aheadInterleave) next(r *run) (element, error) {
	for {
		it.mu.Lock()
		p := it.take()
		end := p == nil && it.exhausted && len(it.freed) == len(it.lanes)
		err := it.start(r)
		it.mu.Unlock()
		switch {
		case p != nil:
			return p.value, p.err
		case end:
			return nil, errEnd
		case err != nil:
			return nil, err
		}
		if err := it.changed.wait(r); err != nil {
			return nil, err
		}
	}
}

// take removes and returns a result of the current lane, or of the first lane after it that has
// one; nil if none has. The caller holds mu.
func (it *aheadInterleave) take() *result {
	if it.ordered {
		return it.takeInOrder()
	}
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

// takeInOrder removes and returns a result of the current lane; nil if it has none yet, or if all
// lanes are free. The caller holds mu.
func (it *aheadInterleave) takeInOrder() *result {
	for len(it.freed) < len(it.lanes) {
		if it.current >= int64(len(it.lanes)) {
			if !it.exhausted {
				return nil // the input is read to open this lane
			}
			it.pass()
		}
		l := it.lanes[it.current]
		switch {
		case l == nil && !it.exhausted:
			return nil
		case l == nil:
			it.pass()
		case len(l.results) > 0:
			p := l.results[0]
			l.results = slices.Delete(l.results, 0, 1)
			if it.taken++; it.taken == it.d.block {
				it.pass()
			}
			return p
		case l.ended:
			it.free(l)
		default:
			return nil
		}
	}
	return nil
}

// pass advances to the next lane. In order, that may be one that is not open yet. The caller holds
// mu.
func (it *aheadInterleave) pass() {
	it.taken = 0
	it.current++
	if n := int64(len(it.lanes)); it.current >= n && (!it.ordered || it.exhausted || n == it.d.cycle) {
		it.current = 0
	}
}

// free frees the lane l if it has ended. The caller holds mu.
func (it *aheadInterleave) free(l *aheadLane) {
	if !l.ended || len(l.results) > 0 {
		return
	}
	l.from.release()
	i := slices.Index(it.lanes, l)
	it.lanes[i] = nil
	it.freed = append(it.freed, i)
	if it.current == int64(i) {
		it.pass()
	}
}

// start starts the goroutines that have work. It returns an error if there is work, but no memory
// for any goroutine. The caller holds mu.
func (it *aheadInterleave) start(r *run) error {
	starved := func(err error) error {
		if it.reading || it.workers > 0 {
			return nil
		}
		return err
	}
	if !it.exhausted && !it.reading && it.hasRoom() {
		if err := takeGoroutines(1); err != nil {
			return starved(err)
		}
		it.reading = true
		go it.readInput(r.ahead())
	}
	if it.ordered {
		it.scan = int(it.current) - 1 // a request waits for the current lane
	}
	for range it.lanes {
		if it.workers >= it.d.parallel.calls {
			return nil
		}
		it.scan = (it.scan + 1) % len(it.lanes)
		l := it.lanes[it.scan]
		if l != nil && !l.busy && !l.ended && len(l.results) < it.d.parallel.buffer {
			if err := takeGoroutines(1); err != nil {
				return starved(err)
			}
			l.busy = true
			it.workers++
			go it.readLane(r.ahead(), l)
		}
	}
	return nil
}

// hasRoom reports whether another lane may be opened. The caller holds mu.
func (it *aheadInterleave) hasRoom() bool {
	return int64(len(it.lanes)) < min(it.d.cycle, maxCalls) || len(it.freed) > 0
}

// readInput opens lanes until none is free, or the input ends or fails.
func (it *aheadInterleave) readInput(r *run) {
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

// open stores a lane in a new place, or else in the one that was freed first. In order, the first
// round visits the new places before it visits a freed one again. The caller holds mu.
func (it *aheadInterleave) open(l *aheadLane) {
	if int64(len(it.lanes)) < min(it.d.cycle, maxCalls) {
		it.lanes = append(it.lanes, l)
		return
	}
	it.lanes[it.freed[0]] = l
	it.freed = slices.Delete(it.freed, 0, 1)
}

// readLane fills the buffer of a lane.
func (it *aheadInterleave) readLane(r *run, l *aheadLane) {
	for more := true; more; {
		p := buffered(it.read(r, l))
		it.mu.Lock()
		if !errors.Is(p.err, errEnd) {
			//sizedmake:ok elements that are held, which have asked
			l.results = append(l.results, p)
		}
		more = p.err == nil && len(l.results) < it.d.parallel.buffer && r.lifetime.Err() == nil
		if !more {
			l.busy = false
			it.workers--
		}
		if errors.Is(p.err, errEnd) || l.at == nil {
			l.ended, l.at = true, nil
			if !it.ordered {
				it.free(l)
			}
		}
		it.mu.Unlock()
		it.changed.notify()
	}
}

// read returns the next element of a lane. If its dataset cannot be created, l.at stays nil.
func (it *aheadInterleave) read(r *run, l *aheadLane) (e element, err error) {
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
func (it *aheadInterleave) state(a *archive) {
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
		last := int64(n) // in order, the next place may be the current one
		if !it.ordered {
			last = max(last-1, 0)
		}
		if it.current < 0 || it.current > last || it.current >= it.d.cycle {
			a.fail(status.InvalidArgumentf("the saved state of the iterator does not match the dataset"))
		}
	}
	for i := range it.lanes {
		it.laneState(a, i)
	}
	free := a.count(len(it.freed))
	if a.loading {
		it.freed = membudget.Make[int](free)
	}
	for i := range it.freed {
		place := int64(it.freed[i])
		a.int(&place)
		it.freed[i] = int(place)
	}
	switch {
	case !a.loading || a.err != nil:
	case !it.freedMatch():
		a.fail(status.InvalidArgumentf("the saved state of the iterator does not match the dataset"))
	case !it.ordered:
		for _, l := range it.lanes {
			if l != nil {
				it.free(l) // the saved state has no errors, so a lane may have nothing left
			}
		}
	}
}

// freedMatch reports whether freed has each free place once. The caller holds mu.
func (it *aheadInterleave) freedMatch() bool {
	listed := map[int]bool{}
	for _, i := range it.freed {
		if i < 0 || i >= len(it.lanes) || it.lanes[i] != nil || listed[i] {
			return false
		}
		//sizedmake:ok one for each lane
		listed[i] = true
	}
	for i, l := range it.lanes {
		if l == nil && !listed[i] {
			return false
		}
	}
	return true
}

func (it *aheadInterleave) laneState(a *archive, i int) {
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
}
