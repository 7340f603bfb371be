package queue

import (
	"context"
	"slices"

	"github.com/weft-ml/weft/internal/opkit/waitqueue"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// StagingMap is a staging area whose elements have keys, and whose components may come and leave
// apart.
type StagingMap struct {
	waitqueue.Monitor
	putters, takers *waitqueue.Queue

	// Guarded by Monitor.
	room
	incomplete map[int64]element // components that are missing are not initialized
	complete   map[int64]element // components that have left are not initialized
	order      []int64           // keys of complete, sorted
}

// UnorderedMap gives elements in no particular order to those who do not say which. The smallest
// key will do.
type UnorderedMap struct{ StagingMap }

// OrderedMap gives the element with the smallest key to those who do not say which.
type OrderedMap struct{ StagingMap }

// TypeName names the resource as TensorFlow does.
func (*UnorderedMap) TypeName() string { return "N10tensorflow12_GLOBAL__N_110StagingMapILb0EEE" }

// TypeName names the resource as TensorFlow does.
func (*OrderedMap) TypeName() string { return "N10tensorflow12_GLOBAL__N_110StagingMapILb1EEE" }

func (m *StagingMap) init(r room) {
	m.room, m.incomplete, m.complete = r, map[int64]element{}, map[int64]element{}
	m.putters, m.takers = m.NewQueue(waitqueue.AnyOrder), m.NewQueue(waitqueue.AnyOrder)
}

// staging returns the map itself, for those who do not care for its order.
func (m *StagingMap) staging() *StagingMap { return m }

// checkIndices checks the numbers of components.
func checkIndices(indices []int32) error {
	if len(indices) == 0 {
		return status.InvalidArgumentf("Indices are empty")
	}
	for i := range indices[1:] {
		if indices[i] >= indices[i+1] {
			return status.InvalidArgumentf("Indices are not strictly ordered")
		}
	}
	return nil
}

func checkIndex(key int64, index int32, components int) error {
	if index < 0 || int(index) >= components {
		return status.InvalidArgumentf("Index '%d' for key '%d' was out of bounds '%d'.", index, key, components)
	}
	return nil
}

// put adds the components with the given numbers, which it owns, to the element of a key, which is
// complete when it has n. It waits while there is no room. A complete element whose key is there
// already is dropped, as TensorFlow does.
func (m *StagingMap) put(ctx context.Context, key int64, indices []int32, components element, n int, done func(error)) {
	bytes, kept := components.bytes(), false
	m.putters.Do(ctx, waitqueue.Operation{
		Cancelled: "MapStage operation was cancelled",
		Try: func() (waitqueue.Outcome, error) {
			if err := m.check(bytes); err != nil {
				return waitqueue.Complete, err
			}
			size := 0 // parts of elements do not count
			if len(indices) == n {
				size = len(m.complete)
			}
			if !m.fits(size, bytes) {
				return waitqueue.Blocked, nil
			}
			var err error
			kept, err = m.add(key, indices, components, n)
			if kept {
				m.used += bytes
			}
			return waitqueue.Complete, err
		},
		Done: func(err error) {
			if !kept {
				components.release()
			}
			done(err)
		},
	})
}

// add is put for components for which there is room. It reports whether it keeps them.
func (m *StagingMap) add(key int64, indices []int32, components element, n int) (kept bool, err error) {
	e, ok := m.incomplete[key]
	if !ok {
		e = make(element, n)
	}
	for _, index := range indices {
		if err := checkIndex(key, index, len(e)); err != nil {
			return false, err
		}
		if e[index].Initialized() {
			return false, status.InvalidArgumentf("The tensor for index '%d' for key '%d' was already initialized '%d'.", index, key, n)
		}
	}
	if _, there := m.complete[key]; there && len(indices) == n {
		return false, nil
	}
	for i, index := range indices {
		e[index] = components[i]
	}
	if slices.ContainsFunc(e, func(t tensor.Tensor) bool { return !t.Initialized() }) {
		m.incomplete[key] = e
		return true, nil
	}
	delete(m.incomplete, key)
	if at, there := slices.BinarySearch(m.order, key); !there {
		m.order = slices.Insert(m.order, at, key)
	}
	m.complete[key] = e
	return true, nil
}

// wanted says which components of which element are taken.
type wanted struct {
	key     int64
	anyKey  bool // the smallest key that is there
	indices []int32
	keep    bool // the components stay
}

// take gives components to done, which owns them, with the key of their element. It waits for the
// element.
func (m *StagingMap) take(ctx context.Context, w wanted, done func(int64, element, error)) {
	var taken element
	m.takers.Do(ctx, waitqueue.Operation{
		Cancelled: "MapUnstage operation was cancelled",
		Try: func() (waitqueue.Outcome, error) {
			if w.anyKey && len(m.order) > 0 {
				w.key = m.order[0]
			}
			e, ok := m.complete[w.key]
			if !ok || w.anyKey && len(m.order) == 0 {
				return waitqueue.Blocked, nil
			}
			var err error
			taken, err = m.pick(e, w)
			return waitqueue.Complete, err
		},
		Done: func(err error) { done(w.key, taken, err) },
	})
}

// pick takes components out of an element, which goes when none is left.
func (m *StagingMap) pick(e element, w wanted) (element, error) {
	for _, index := range w.indices {
		if err := checkIndex(w.key, index, len(e)); err != nil {
			return nil, err
		}
		if !e[index].Initialized() {
			return nil, status.InvalidArgumentf("Tensor at index '%d' for key '%d' has already been removed.", index, w.key)
		}
	}
	taken := make(element, len(w.indices))
	for i, index := range w.indices {
		taken[i] = e[index].Retain()
		if !w.keep {
			e[index].Release()
		}
	}
	if w.keep {
		return taken, nil
	}
	m.used -= taken.bytes()
	if !slices.ContainsFunc(e, func(t tensor.Tensor) bool { return t.Initialized() }) {
		delete(m.complete, w.key)
		at, _ := slices.BinarySearch(m.order, w.key)
		m.order = slices.Delete(m.order, at, at+1)
	}
	return taken, nil
}

func (m *StagingMap) size() (n int) {
	m.View(func() { n = len(m.complete) })
	return n
}

func (m *StagingMap) incompleteSize() (n int) {
	m.View(func() { n = len(m.incomplete) })
	return n
}

func (m *StagingMap) clear() {
	m.Change(func() {
		for _, elems := range []map[int64]element{m.complete, m.incomplete} {
			for _, e := range elems {
				e.release()
			}
			clear(elems)
		}
		m.order, m.used = nil, 0
	})
}
