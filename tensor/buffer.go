package tensor

import (
	"math/bits"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/internal/sys/tensormem"
)

// Alignment is the alignment of allocated buffers in bytes: that of a cache line and of the widest
// vector.
const Alignment = 64

// Buffer is the storage behind one or more tensors. Pooled buffers are counted: when the last
// reference is released, the memory returns to the pool and is reused. Buffers over memory of the
// caller are left to the garbage collector and are not counted. Element memory holds no pointers,
// so the collector does not scan it.
//
// A leaked reference costs a garbage collection, never a wrong result. A reference that is released
// twice can cause wrong results: build with -tags invariants to poison freed memory and to panic on
// double releases.
type Buffer struct {
	refs  atomic.Int32
	class int8   // index into pools, or one of the constants below
	mem   []byte // element memory, aligned
	// []string, []*Handle or []VariantValue, for element types that are not plain memory; the
	// owner of the memory for classDevice
	vals any
	free func() // called at the last release; only for classForeign and classDevice

	reclaim atomic.Pointer[func()] // see tensormem.SetReclaimer
	paid    paid                   // see membudget.ChargeTensor
}

const (
	classUncounted int8 = -1 // left to the garbage collector
	classForeign   int8 = -2 // counted, with a free function
	classDevice    int8 = -3 // counted, for the device alone, with an owner and a free function
)

// NewForeign returns a counted buffer over memory of another owner. free is called once, after the
// last reference is released. If a reference leaks, free is never called.
func NewForeign(mem []byte, free func()) *Buffer {
	countHeld(1)
	b := &Buffer{class: classForeign, mem: mem, free: free}
	b.refs.Store(1)
	return b
}

// newDevice implements tensormem.NewDevice.
func newDevice(mem []byte, owner any, free func()) any {
	countHeld(1)
	b := &Buffer{class: classDevice, mem: mem, vals: owner, free: free}
	b.refs.Store(1)
	return b
}

// deviceOf implements tensormem.DeviceOf.
func deviceOf(t any) any {
	if t := t.(*Tensor); t.OnDevice() { //nolint:forcetypeassert // see tensormem
		return t.buf.vals
	}
	return nil
}

func (b *Buffer) retain() {
	if b != nil && b.class != classUncounted {
		b.refs.Add(1)
	}
}

func (b *Buffer) release() {
	if b == nil || b.class == classUncounted {
		return
	}
	n := b.refs.Add(-1)
	checkRefs(n)
	if n != 0 {
		return
	}
	countHeld(-1)
	b.paid.end()
	if b.class == classDevice {
		b.free()
		return
	}
	poison(b.mem)
	if b.reclaim.Load() != nil {
		b.reclaim.Store(nil)
	}
	if b.class == classForeign {
		b.free()
		return
	}
	if len(b.mem) >= minListed {
		freeLists[b.class].put(b)
		return
	}
	pools[b.class].Put(b)
}

// exclusive reports whether the caller's reference is the only one.
func (b *Buffer) exclusive() bool {
	if b == nil || b.class == classUncounted {
		return false
	}
	if b.refs.Load() == 1 {
		return true
	}
	reclaim := b.reclaim.Load()
	if reclaim == nil {
		return false
	}
	(*reclaim)()
	return b.refs.Load() == 1
}

// Size classes are 64 << k and 96 << k bytes, so at most a third of a buffer is unused. From
// minChecked on, a buffer has exactly the requested size.
const (
	minClassBits = 6
	numClasses   = 2 * (40 - minClassBits)
)

var pools [numClasses]sync.Pool

func classOf(size int) int {
	if size <= 1<<minClassBits {
		return 0
	}
	k := bits.Len(uint(size - 1)) // size <= 1<<k
	if size <= 3<<(k-2) {
		return 2*(k-minClassBits) - 1
	}
	return 2 * (k - minClassBits)
}

func classSize(class int) int {
	if class%2 == 0 {
		return 1 << (minClassBits + class/2)
	}
	return 3 << (minClassBits + class/2 - 1)
}

// newBuffer returns a pooled buffer of at least size bytes with one reference, or false if there is
// not enough memory. The memory is not cleared.
func newBuffer(size int) (*Buffer, bool) {
	b, ok := pooledBuffer(size)
	if ok {
		countHeld(1)
		b.refs.Store(1)
	}
	return b, ok
}

func pooledBuffer(size int) (*Buffer, bool) {
	class := classOf(size)
	length := classSize(class)
	if length >= minListed {
		if b := freeLists[class].take(size); b != nil {
			return b, true
		}
		if length >= minChecked {
			return largeBuffer(class, size)
		}
	} else if b, ok := pools[class].Get().(*Buffer); ok {
		return b, true
	}
	b := &Buffer{class: int8(class)}
	return b, membudget.Reserve(int64(length)+bufferOverhead, func() { b.mem = alignedBytes(length) })
}

// bufferOverhead is about the number of bytes that a new buffer takes besides its elements.
const bufferOverhead = 192

// largeBuffer returns a new buffer of exactly size bytes.
func largeBuffer(class, size int) (*Buffer, bool) {
	b := &Buffer{class: int8(class)}
	return b, allocIfAvailable(size, func() { b.mem = alignedBytes(size) })
}

// alignedBytes returns size zero bytes that start at a multiple of Alignment.
func alignedBytes(size int) []byte {
	mem := make([]byte, size+Alignment)
	adviseHuge(mem)
	off := int(-uintptr(unsafe.Pointer(unsafe.SliceData(mem))) & (Alignment - 1))
	return mem[off : off+size : off+size]
}

func init() {
	tensormem.SetLimit, tensormem.DropFree, tensormem.Held, tensormem.FreeBytes = setLimit, dropFree, heldBuffers, freeBytes
	tensormem.SetReclaimer = setReclaimer
	tensormem.NewDevice, tensormem.DeviceOf = newDevice, deviceOf
	membudget.ChargeTensor = chargeAny
}
