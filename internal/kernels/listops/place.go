package listops

import (
	"iter"

	"github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/tensor"
)

// IsOn implements device.Holder.
func (l *List) IsOn(d *device.Device) bool {
	return l.gpu == d || l.items.root == nil || l.dtype.Size() == 0 && l.dtype != tensor.Variant
}

// Tensors implements device.Holder.
func (l *List) Tensors() iter.Seq[*tensor.Tensor] {
	return func(yield func(*tensor.Tensor) bool) {
		for _, t := range l.items.all() {
			if !yield(t) {
				return
			}
		}
	}
}

// MovedTo implements device.Holder.
func (l *List) MovedTo(d *device.Device, moved func(*tensor.Tensor) *tensor.Tensor) any {
	out := *l
	out.gpu = d
	out.items, _ = vectorOf(l.items.n, func(i int) (*tensor.Tensor, error) {
		if t := l.items.get(i); t != nil {
			return out.held(moved(t)), nil
		}
		return nil, nil //nolint:nilnil // the element is unset
	})
	return &out
}

// held returns an element that the list is about to hold.
func (l *List) held(t *tensor.Tensor) *tensor.Tensor {
	if l.gpu != nil {
		l.gpu.Holds(len(t.Bytes()))
	}
	return t
}

// on returns the list with its elements in the memory in which the kernel of ctx computes. Edges of
// graphs between devices move lists, so that it is rarely elsewhere.
func (l *List) on(ctx *kernel.Context) (*List, error) {
	d := ctx.GPU()
	if l.IsOn(d) {
		if l.gpu == d {
			return l, nil
		}
		out := *l
		out.gpu = d
		return &out, nil
	}
	return l.movedTo(d)
}

// movedTo returns the list with its elements in the memory of a device, or in that of the host if d
// is nil. It waits for the copies.
func (l *List) movedTo(d *device.Device) (*List, error) {
	if l.IsOn(d) {
		return l, nil
	}
	placed, err := device.PlaceNow(tensor.Scalar(tensor.VariantValue{Value: l}), d)
	if err != nil {
		return nil, err
	}
	return asList(tensor.Value[tensor.VariantValue](&placed)), nil
}

// element returns input i as an element of a list, with a reference of its own, in the memory in
// which the kernel of ctx computes.
func element(ctx *kernel.Context, l *List, i int) (*tensor.Tensor, error) {
	own, err := device.PlaceNow(ctx.Input(i).Retain(), ctx.GPU())
	return l.held(&own), err
}

// zerosAs returns zeros with the type and shape of t, in its memory.
func zerosAs(t *tensor.Tensor) (tensor.Tensor, error) {
	d := device.Of(t)
	if d == nil {
		return tensor.Zeros(t.DType(), t.Shape())
	}
	zero, err := d.Alloc(t.DType(), t.Shape())
	if err == nil {
		err = d.Fill(&zero, 0)
	}
	return zero, err
}
