package tensor

import (
	"math/bits"
	"sync"
	"sync/atomic"
	"unsafe"
)

// Alignment is the alignment in bytes of every buffer that this package allocates: a cache line,
// and the widest vector.
const Alignment = 64

// Buffer is the storage behind one or more tensors. Pooled buffers are counted: when the last
// reference is released the memory goes back to the pool and is handed out again. Buffers made from
// memory of the caller's are left to the garbage collector and ignore the count. Element memory
// holds no pointers, so the collector never scans it.
//
// A reference that is leaked costs a garbage collection, never a wrong answer. A reference that is
// released twice does: build with -tags invariants to have freed memory poisoned and double
// releases caught.
type Buffer struct {
	refs  atomic.Int32
	class int8   // index into pools, or one of the marks below
	mem   []byte // element memory, aligned
	// []string, []*Handle or []VariantValue, for element types that are not plain memory
	vals any
	free func() // called at the last release, for classForeign

	reclaim atomic.Pointer[func()] // see Tensor.KeptFor
}

const (
	classUncounted int8 = -1 // the garbage collector's
	classForeign   int8 = -2 // counted, with a free function
)

// NewForeign returns a counted buffer over memory that someone else owns; free is called once,
// after the last reference is released. Where a reference leaks, free is never called.
func NewForeign(mem []byte, free func()) *Buffer {
	countHeld(1)
	b := &Buffer{class: classForeign, mem: mem, free: free}
	b.refs.Store(1)
	return b
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
	poison(b.mem)
	if b.reclaim.Load() != nil {
		b.reclaim.Store(nil)
	}
	if b.class == classForeign {
		b.free()
		return
	}
	if len(b.mem) >= minShelved {
		shelves[b.class].put(b)
		return
	}
	pools[b.class].Put(b)
}

// exclusive reports whether the caller, who holds a reference, holds the only one.
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

// Size classes are 64 << k and 96 << k bytes, so that at most a third of a buffer is unused. From
// minAsked on buffers have no more than was asked for.
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
// no memory for it. Its memory is not cleared.
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
	if length >= minShelved {
		if b := shelves[class].take(size); b != nil {
			return b, true
		}
		if length >= minAsked {
			return largeBuffer(class, size)
		}
	} else if b, ok := pools[class].Get().(*Buffer); ok {
		return b, true
	}
	return &Buffer{class: int8(class), mem: alignedBytes(length)}, true
}

// largeBuffer returns a new buffer of no more than size bytes.
func largeBuffer(class, size int) (*Buffer, bool) {
	b := &Buffer{class: int8(class)}
	return b, ifThereIsRoom(size, func() { b.mem = alignedBytes(size) })
}

// alignedBytes returns size zero bytes that start at a multiple of Alignment.
func alignedBytes(size int) []byte {
	mem := make([]byte, size+Alignment)
	adviseHuge(mem)
	off := int(-uintptr(unsafe.Pointer(unsafe.SliceData(mem))) & (Alignment - 1))
	return mem[off : off+size : off+size]
}
