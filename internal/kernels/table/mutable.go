package table

import (
	"github.com/weft-ml/weft/internal/opkit/gatherscatter"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// mutable is a hash table that can be changed at any time.
type mutable struct {
	layout
	keys   index
	values column
}

func newMutable(l layout) (*mutable, error) {
	keys, err := newIndex(l.keyType)
	if err != nil {
		return nil, err
	}
	values, err := newColumn(l.valueType, 0, l.valueShape.NumElements())
	return &mutable{layout: l, keys: keys, values: values}, err
}

func (m *mutable) size() int { return m.keys.len() }

func (m *mutable) find(out, keys, defaults *tensor.Tensor) error {
	return m.get(out, keys, defaults, true)
}

func (m *mutable) get(out, keys, defaults *tensor.Tensor, perKey bool) error {
	l, err := gatherscatter.NewList(keys.NumElements())
	defer l.Release()
	if err != nil {
		return err
	}
	m.keys.find(keys, l.Rows)
	m.values.get(out, defaults, l, perKey)
	return nil
}

func (m *mutable) insert(keys, values *tensor.Tensor) error { return m.put(keys, values, nil) }

// put stores values. If check is not nil, it is first called with the numbers of the keys. If it
// fails, the new keys are left without values.
func (m *mutable) put(keys, values *tensor.Tensor, check func(numbers []int64) error) error {
	l, err := gatherscatter.NewList(keys.NumElements())
	defer l.Release()
	if err != nil {
		return err
	}
	if err := m.values.reserve(m.keys.len() + keys.NumElements()); err != nil {
		return err
	}
	if err := m.values.own(); err != nil {
		return err
	}
	m.keys.add(keys, l.Rows)
	m.values.n = m.keys.len()
	if check != nil {
		if err := check(l.Rows); err != nil {
			return err
		}
	}
	m.values.set(l, values)
	return nil
}

func (m *mutable) remove(keys *tensor.Tensor) error {
	err := m.values.own()
	if err == nil {
		m.keys.remove(keys, m.values.drop)
	}
	return err
}

func (m *mutable) replace(keys, values *tensor.Tensor) error {
	if err := m.checkPairs(keys, values); err != nil {
		return err
	}
	return m.refill(keys, values, nil)
}

// refill replaces the contents with keys and values. If check fails, as in put, the contents are
// unchanged.
func (m *mutable) refill(keys, values *tensor.Tensor, check func(numbers []int64) error) error {
	fresh, err := newMutable(m.layout)
	if err == nil {
		err = fresh.put(keys, values, check)
	}
	if err != nil {
		return err
	}
	m.values.t.Release()
	*m = *fresh
	return nil
}

func (m *mutable) export() (keys, values tensor.Tensor, err error) {
	shape := append(tensor.Shape{int64(m.size())}, m.valueShape...)
	if values, err = m.values.export(shape); err != nil {
		return keys, values, err
	}
	return m.keys.export(), values, nil
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
