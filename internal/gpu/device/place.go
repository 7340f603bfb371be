package device

import (
	"sync"

	"github.com/weft-ml/weft/tensor"
)

// IsPlaced reports whether a tensor is in the memory of a device, or in that of the host if d is
// nil. Strings, handles and variants are in the memory of the host, and are placed everywhere,
// except for variants that hold tensors elsewhere, see [Holder].
func IsPlaced(t *tensor.Tensor, d *Device) bool {
	switch {
	case t.OnDevice():
		header := *t // Of takes the address, and the tensors of callers would all be on the heap
		return Of(&header) == d
	case t.DType() == tensor.Variant:
		return !holdsElsewhere(t, d)
	}
	return d == nil || t.DType().Size() == 0
}

// Place calls done with a tensor that has the elements of t and is in the memory of a device, or in
// that of the host if d is nil. It takes over the reference of t, and done owns that of the result.
// done runs on another goroutine and must not block, or before Place returns.
func Place(t tensor.Tensor, d *Device, done func(tensor.Tensor, error)) {
	switch {
	case IsPlaced(&t, d):
		done(t, nil)
		return
	case t.DType() == tensor.Variant:
		placeVariants(t, d, done)
		return
	case d == nil:
		Of(&t).ToHost(&t, done)
	case t.OnDevice():
		d.Take(&t, done)
	default:
		done(d.ToDevice(&t))
	}
	t.Release()
}

// PlaceNow is [Place] that waits for the result.
func PlaceNow(t tensor.Tensor, d *Device) (tensor.Tensor, error) {
	var out tensor.Tensor
	var err error
	came := make(chan struct{})
	Place(t, d, func(v tensor.Tensor, e error) {
		out, err = v, e
		close(came)
	})
	<-came
	return out, err
}

// Gather moves tensors on other devices than d to the memory of the host, and calls done when that
// has happened. d is nil for the host. It takes over the references and stores those of the copies.
// It does not touch the slice any more when done is called.
func Gather(tensors []tensor.Tensor, d *Device, done func(error)) {
	var away []int
	for i := range tensors {
		if t := &tensors[i]; !IsPlaced(t, d) && !IsPlaced(t, nil) {
			away = append(away, i)
		}
	}
	if away == nil {
		done(nil)
		return
	}
	left := newCountdown(len(away), done)
	for _, i := range away {
		t := tensors[i]
		tensors[i] = tensor.Tensor{}
		Place(t, nil, func(v tensor.Tensor, err error) {
			tensors[i] = v
			left.end(err)
		})
	}
}

// countdown calls done, on a goroutine of its own, with the first error when a number of copies
// have ended.
type countdown struct {
	done func(error)

	mu   sync.Mutex
	left int   // guarded by mu
	err  error // guarded by mu
}

func newCountdown(n int, done func(error)) *countdown { return &countdown{done: done, left: n} }

// end records the end of one copy.
func (c *countdown) end(err error) {
	c.mu.Lock()
	c.left--
	if c.err == nil {
		c.err = err
	}
	last, first := c.left == 0, c.err
	c.mu.Unlock()
	if last {
		go c.done(first) // what follows may wait for copies of the same stream
	}
}
