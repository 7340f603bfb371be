package device

import (
	"iter"
	"sync/atomic"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/tensor"
)

// Holder is a variant value that holds tensors, such as a tensor list. The variant itself is in the
// memory of the host, and the tensors are in that of a device or of the host. A move of the variant
// copies the tensors. A Holder is a pointer, and does not change.
type Holder interface {
	// IsOn reports whether all tensors are in the memory of a device, or in that of the host if d
	// is nil, including those that are held by variants among them.
	IsOn(d *Device) bool
	// Tensors yields the tensors. The caller does not change them.
	Tensors() iter.Seq[*tensor.Tensor]
	// MovedTo returns the value with other tensors, which are on d. moved returns the tensor that
	// replaces one of Tensors.
	MovedTo(d *Device, moved func(*tensor.Tensor) *tensor.Tensor) any
}

// holdsElsewhere reports whether a variant tensor has a value whose tensors are elsewhere than on
// d.
func holdsElsewhere(t *tensor.Tensor, d *Device) bool {
	for _, v := range tensor.Values[tensor.VariantValue](t) {
		if h, ok := v.Value.(Holder); ok && !h.IsOn(d) {
			return true
		}
	}
	return false
}

// move moves the tensors that variants hold. Variants may share values, which are visited once:
// there can be many more ways to a value than values.
type move struct {
	d *Device
	// copies are the tensors that are copied, by those that are held.
	copies map[*tensor.Tensor]*tensor.Tensor
	order  []*tensor.Tensor // keys of copies
	seen   map[Holder]bool
	moved  map[Holder]any
}

// placeVariants calls done with a copy of t, a variant tensor, that holds copies on d of what t
// holds. It takes over the reference of t. See [Place].
func placeVariants(t tensor.Tensor, d *Device, done func(tensor.Tensor, error)) {
	m := &move{d: d, copies: map[*tensor.Tensor]*tensor.Tensor{}, seen: map[Holder]bool{}, moved: map[Holder]any{}}
	m.collect(&t)
	if len(m.order) == 0 {
		out, err := m.rebuild(&t)
		t.Release()
		done(out, err)
		return
	}
	var failed atomic.Bool // the remaining copies are not made
	left := newCountdown(len(m.order), func(err error) {
		var out tensor.Tensor
		if err == nil {
			out, err = m.rebuild(&t)
		} else {
			for _, c := range m.copies {
				c.Release()
			}
		}
		t.Release()
		done(out, err)
	})
	for _, from := range m.order {
		to := m.copies[from]
		if failed.Load() {
			left.end(nil)
			continue
		}
		Place(from.Retain(), d, func(c tensor.Tensor, err error) {
			*to = c
			if err != nil {
				failed.Store(true)
			}
			left.end(err)
		})
	}
}

// collect adds the tensors that t, a variant tensor, holds elsewhere than on m.d.
func (m *move) collect(t *tensor.Tensor) {
	for _, v := range tensor.Values[tensor.VariantValue](t) {
		h, ok := v.Value.(Holder)
		if !ok || m.seen[h] || h.IsOn(m.d) {
			continue
		}
		m.seen[h] = true
		for e := range h.Tensors() {
			switch {
			case e.DType() == tensor.Variant:
				m.collect(e)
			case m.copies[e] == nil && !IsPlaced(e, m.d):
				m.copies[e] = new(tensor.Tensor)
				m.order = membudget.Append(m.order, e)
			}
		}
	}
}

// rebuild returns t, a variant tensor, with values that hold the copies.
func (m *move) rebuild(t *tensor.Tensor) (tensor.Tensor, error) {
	out, err := tensor.AllocShared(tensor.Variant, t.Shape())
	if err != nil {
		return out, err
	}
	to := tensor.Values[tensor.VariantValue](&out)
	for i, v := range tensor.Values[tensor.VariantValue](t) {
		to[i] = v
		h, ok := v.Value.(Holder)
		if !ok || h.IsOn(m.d) {
			continue
		}
		if to[i].Value = m.moved[h]; to[i].Value != nil {
			continue
		}
		to[i].Value = h.MovedTo(m.d, func(e *tensor.Tensor) *tensor.Tensor {
			if e.DType() == tensor.Variant {
				inner, failed := m.rebuild(e)
				if failed != nil {
					err = failed
				}
				return &inner
			}
			if c := m.copies[e]; c != nil {
				return c
			}
			return e
		})
		m.moved[h] = to[i].Value
	}
	if err != nil {
		out.Release()
		return tensor.Tensor{}, err
	}
	return out, nil
}
