package tensor

import (
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/weft-ml/weft/internal/sys/membudget"
)

// charge is what an account pays for a buffer. The last release of the buffer ends it, or the
// garbage collection of a buffer that is not counted or whose references leaked.
type charge struct {
	*membudget.Charge
	cleanup runtime.Cleanup
}

// paid is the charge of a buffer; nil for none.
type paid struct{ atomic.Pointer[charge] }

// end ends the charge, if there is one.
func (p *paid) end() {
	if p.Load() == nil {
		return
	}
	if c := p.Swap(nil); c != nil {
		c.cleanup.Stop()
		c.End()
	}
}

// headers is the memory of a tensor that is not its elements, in bytes: the Buffer, the header in
// an element of a queue or dataset, its shape, and the charge with its cleanup function. It is most
// of what a scalar takes.
const headers = 256

// chargeAny implements membudget.ChargeTensor.
func chargeAny(t any, a *membudget.Account) *membudget.Account {
	return t.(*Tensor).charge(a) //nolint:forcetypeassert // see membudget
}

// charge charges the memory of t to an account, unless an account pays for it already.
func (t *Tensor) charge(a *membudget.Account) *membudget.Account {
	b := t.buf
	if b == nil || b.class == classDevice || b.paid.Load() != nil {
		return nil
	}
	n := b.size()
	if n == 0 {
		return nil
	}
	n += headers
	made, over := a.Charge(n)
	if over != nil {
		return over
	}
	c := &charge{Charge: made}
	c.cleanup = runtime.AddCleanup(b, (*membudget.Charge).End, made)
	if !b.paid.CompareAndSwap(nil, c) { // another step pays
		c.cleanup.Stop()
		made.End()
	}
	return nil
}

// size returns the number of bytes that a buffer holds. Text that several strings share counts
// several times.
func (b *Buffer) size() int64 {
	switch v := b.vals.(type) {
	case []string:
		n := int64(len(v)) * int64(unsafe.Sizeof(""))
		for _, s := range v {
			n += int64(len(s))
		}
		return n
	case []*Handle:
		return int64(len(v)) * int64(unsafe.Sizeof(uintptr(0)))
	case []VariantValue:
		return int64(len(v)) * int64(unsafe.Sizeof(*new(VariantValue)))
	}
	return int64(len(b.mem))
}
