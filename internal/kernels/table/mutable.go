package table

import (
	"context"

	"github.com/weft-ml/weft/internal/opkit/gatherscatter"
	"github.com/weft-ml/weft/internal/opkit/resource"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// mutable is a hash table that can be changed at any time.
type mutable struct {
	layout
	keys   index
	values column
	text   *membudget.Holding // of keys and values
}

func newMutable(l layout) (*mutable, error) {
	text := membudget.NewHolding()
	keys, err := newIndex(l.keyType, text)
	if err != nil {
		return nil, err
	}
	values, err := newColumn(nil, l.valueType, 0, l.valueShape.NumElements())
	return &mutable{layout: l, keys: keys, values: values, text: text}, err
}

func (m *mutable) close() { m.text.End() }

func (m *mutable) size() int { return m.keys.len() }

func (m *mutable) find(ctx context.Context, out, keys, defaults *tensor.Tensor) error {
	return m.get(ctx, out, keys, defaults, true)
}

func (m *mutable) get(ctx context.Context, out, keys, defaults *tensor.Tensor, perKey bool) error {
	l, err := gatherscatter.NewList(keys.NumElements())
	defer l.Release()
	if err != nil {
		return err
	}
	if err := m.keys.find(ctx, keys, l.Rows); err != nil {
		return err
	}
	m.values.get(out, defaults, l, perKey)
	return nil
}

func (m *mutable) insert(ctx context.Context, a *membudget.Account, keys, values *tensor.Tensor) error {
	return m.put(ctx, a, keys, values, nil)
}

// put stores values. If check is not nil, it is first called with the numbers of the keys. If it
// fails, the new keys are left without values.
func (m *mutable) put(ctx context.Context, a *membudget.Account, keys, values *tensor.Tensor, check func(numbers []int64) error) error {
	l, err := gatherscatter.NewList(keys.NumElements())
	defer l.Release()
	if err != nil {
		return err
	}
	if err := m.values.own(a); err != nil {
		return err
	}
	text := textOf(values)
	if err := resource.Hold(m.text, a, text); err != nil {
		return err
	}
	if err := m.keys.add(ctx, a, keys, l.Rows); err != nil {
		m.text.Shrink(text)
		return err
	}
	if err := m.values.reserve(a, m.keys.len()); err != nil {
		m.text.Shrink(text)
		m.keys.truncate(m.values.n)
		return err
	}
	m.values.n = m.keys.len()
	if check != nil {
		if err := check(l.Rows); err != nil {
			return err
		}
	}
	m.text.Shrink(m.values.set(l, values))
	return nil
}

func (m *mutable) remove(ctx context.Context, a *membudget.Account, keys *tensor.Tensor) error {
	err := m.values.own(a)
	if err == nil {
		err = m.keys.remove(ctx, a, keys, func(number int) { m.text.Shrink(m.values.drop(number)) })
	}
	if err == nil && m.values.isSparse() {
		// Without memory for a smaller tensor the larger one stays.
		_ = m.values.resize(a, 2*m.values.n)
	}
	return err
}

func (m *mutable) replace(ctx context.Context, a *membudget.Account, keys, values *tensor.Tensor) error {
	if err := m.checkPairs(keys, values); err != nil {
		return err
	}
	return m.refill(ctx, a, keys, values, nil)
}

// refill replaces the contents with keys and values. If check fails, as in put, the contents are
// unchanged.
func (m *mutable) refill(ctx context.Context, a *membudget.Account, keys, values *tensor.Tensor, check func(numbers []int64) error) error {
	fresh, err := newMutable(m.layout)
	if err != nil {
		return err
	}
	err = fresh.put(ctx, a, keys, values, check)
	if err != nil {
		fresh.release()
		return err
	}
	m.release()
	*m = *fresh
	return nil
}

func (m *mutable) export() (keys, values tensor.Tensor, err error) {
	shape := append(tensor.Shape{int64(m.size())}, m.valueShape...)
	if values, err = m.values.export(shape); err != nil {
		return keys, values, err
	}
	if keys, err = m.keys.export(); err != nil {
		values.Release()
	}
	return keys, values, err
}

// release frees the memory. The contents must not be used afterwards.
func (m *mutable) release() {
	m.keys.release()
	m.values.t.Release()
	m.text.End()
}

func createMutable(_ *kernel.Context, c *kernel.Construction) (contents, layout, error) {
	l := layout{keyType: c.Attrs.Type("key_dtype"), valueType: c.Attrs.Type("value_dtype")}
	m, err := newMutable(l)
	return m, l, err
}

// createOfTensors creates a mutable table whose values are vectors.
func createOfTensors(_ *kernel.Context, c *kernel.Construction) (contents, layout, error) {
	l := layout{keyType: c.Attrs.Type("key_dtype"), valueType: c.Attrs.Type("value_dtype")}
	shape, ok := c.Attrs.Shape("value_shape").Full()
	if !ok || len(shape) != 1 {
		return nil, l, status.InvalidArgumentf("Default value must be a vector, got shape %v", c.Attrs.Shape("value_shape"))
	}
	l.valueShape = shape
	m, err := newMutable(l)
	return m, l, err
}
