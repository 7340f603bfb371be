// Package shadow gives the memory of a device a range of addresses of the host that nothing can
// read or write.
//
// The simple design is a second kind of tensor for device memory. Every function that cuts,
// reshapes, counts or forwards tensors would need a second form. Here the element bytes of a tensor
// on a device are a slice of the shadow of the device's memory, so all of that works unchanged. The
// place on the device is the distance from the start of the shadow. Code of the CPU that touches
// the elements by mistake faults.
package shadow

import "unsafe"

// Range is the shadow of the memory of one device. It uses addresses and no memory.
type Range struct{ mem []byte }

// New reserves size bytes of addresses.
func New(size int) (*Range, error) {
	mem, err := reserve(size)
	if err != nil {
		return nil, err
	}
	return &Range{mem}, nil
}

// Close returns the addresses. No slice of the range may be used afterwards.
func (r *Range) Close() error {
	mem := r.mem
	r.mem = nil
	return unreserve(mem)
}

// Size returns the number of addresses.
func (r *Range) Size() int { return len(r.mem) }

// Bytes returns the shadow of size bytes at off. It panics if they are outside of the range.
func (r *Range) Bytes(off, size int) []byte { return r.mem[off : off+size : off+size] }

// Offset returns the place of the start of b in the range, and whether b is in the range.
func (r *Range) Offset(b []byte) (int, bool) {
	off := uintptr(unsafe.Pointer(unsafe.SliceData(b))) - uintptr(unsafe.Pointer(unsafe.SliceData(r.mem)))
	return int(off), off < uintptr(len(r.mem))
}
