package queue

import (
	"context"
	"slices"

	"github.com/weft-ml/weft/internal/opkit/waitqueue"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// StagingMap is a staging area whose elements have keys and whose components may be added and
// removed separately.
type StagingMap struct {
	waitqueue.Monitor
	putters, takers *waitqueue.Queue

	// Guarded by Monitor.
	room
	incomplete map[int64]element // missing components are uninitialized
	complete   map[int64]element // removed components are uninitialized
	order      []int64           // keys of complete, ascending
	held       held
}

// UnorderedMap is a map whose elements are taken in unspecified order by operations without a key.
// This implementation takes the smallest key.
type UnorderedMap struct{ StagingMap }

// OrderedMap is a map from which operations without a key take the element with the smallest key.
type OrderedMap struct{ StagingMap }

// TypeName names the resource as TensorFlow does.
func (*UnorderedMap) TypeName() string { return "N10tensorflow12_GLOBAL__N_110StagingMapILb0EEE" }

// TypeName names the resource as TensorFlow does.
func (*OrderedMap) TypeName() string { return "N10tensorflow12_GLOBAL__N_110StagingMapILb1EEE" }

func (m *StagingMap) init(r room) {
	m.room, m.incomplete, m.complete = r, map[int64]element{}, map[int64]element{}
	m.putters, m.takers = m.NewQueue(waitqueue.AnyOrder), m.NewQueue(waitqueue.AnyOrder)
}

// staging returns the map itself, for operations that do not depend on the order.
func (m *StagingMap) staging() *StagingMap { return m }

// checkIndices checks component indices.
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

// put adds the components with the given indices, which it owns, to the element of a key. The
// element is complete when it has all n components. put waits while the map is full. A complete
// element whose key is already present is dropped, as in TensorFlow.
func (m *StagingMap) put(ctx context.Context, key int64, indices []int32, components element, n int, done func(error)) {
	bytes, kept := components.bytes(), false
	m.putters.Do(ctx, waitqueue.Operation{
		Cancelled: "MapStage operation was cancelled",
		Try: func() (waitqueue.Outcome, error) {
			if err := m.check(bytes); err != nil {
				return waitqueue.Complete, err
			}
			size := 0 // incomplete elements do not count
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

// add adds components that fit, and reports whether it keeps them.
func (m *StagingMap) add(key int64, indices []int32, components element, n int) (kept bool, err error) {
	e, ok := m.incomplete[key]
	if !ok {
		// an element has as many components as an attribute says
		m.held.mustAdd(len(m.incomplete)+len(m.complete), n)
		e = membudget.Make[tensor.Tensor](n)
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

// wanted selects the components to take and the element to take them from.
type wanted struct {
	key     int64
	anyKey  bool // take the smallest key present
	indices []int32
	keep    bool // leave the components in the map
}

// take passes components, which done owns, and the key of their element to done. It waits for the
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

// pick takes components out of an element, and removes the element when no component is left.
func (m *StagingMap) pick(e element, w wanted) (element, error) {
	for _, index := range w.indices {
		if err := checkIndex(w.key, index, len(e)); err != nil {
			return nil, err
		}
		if !e[index].Initialized() {
			return nil, status.InvalidArgumentf("Tensor at index '%d' for key '%d' has already been removed.", index, w.key)
		}
	}
	//sizedmake:ok components of an element
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
