// Package tensor provides element types, shapes and tensors, with the counted, pooled buffers
// behind them.
//
// A [Tensor] is a small header: copying it copies no elements. A holder of a Tensor borrows it, for
// as long as its owner says, or owns a reference to its buffer. Allocation and [Tensor.Retain]
// create a reference; [Tensor.Release] ends it. Programs that never call Release are correct: the
// garbage collector frees their buffers. Headers and shapes stay valid forever; only element memory
// is recycled.
//
// All holders share the elements. Elements may be written only by their first owner, before the
// tensor is passed on, or by an owner for whom [Tensor.Exclusive] is true.
//
// Element memory is little-endian and row-major, as on TensorFlow's wire. Strings, resource handles
// and variants are Go values.
package tensor

import (
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/weft-ml/weft/internal/sys/bulk"
	"github.com/weft-ml/weft/status"
)

// Tensor is a multidimensional array. The zero Tensor is uninitialized: it has no type and no
// elements.
type Tensor struct {
	dtype DType
	shape Shape
	buf   *Buffer
	mem   []byte // the elements, within buf.mem; nil where they are Go values in buf.vals
}

// limit is the maximum size of a tensor in bytes.
var limit atomic.Int64

func init() { limit.Store(1 << 38) }

// setLimit sets the maximum size of a tensor in bytes. Larger allocations are ResourceExhausted
// errors, as are those beyond the available memory.
func setLimit(bytes int64) { limit.Store(bytes) }

// byteSize validates a shape and returns the size of a tensor in bytes. A Go value counts as one
// word.
func byteSize(dtype DType, shape Shape) (int, error) {
	if !dtype.Valid() {
		return 0, status.InvalidArgumentf("cannot make a tensor of type %v", dtype)
	}
	if err := shape.Check(); err != nil {
		return 0, err
	}
	n, width := shape.NumElements(), int64(max(dtype.Size(), 8*boolToInt(dtype.Size() == 0)))
	if n > math.MaxInt64/width || n*width > limit.Load() {
		return 0, exhausted(dtype, shape)
	}
	return int(n * width), nil
}

// exhausted returns the error for a tensor for which there is not enough memory, in TensorFlow's
// words, which clients match.
func exhausted(dtype DType, shape Shape) error {
	return status.ResourceExhaustedf("OOM when allocating tensor with shape%v and type %v", shape, dtype)
}

func boolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Alloc returns a tensor with one reference. Its elements are not cleared, except that strings are
// empty and handles and variants are nil. The shape is copied. The error has the code
// InvalidArgument for an invalid shape and ResourceExhausted for lack of memory.
func Alloc(dtype DType, shape Shape) (Tensor, error) {
	size, err := byteSize(dtype, shape)
	if err != nil {
		return Tensor{}, err
	}
	return allocate(dtype, slices.Clone(shape), size)
}

// AllocShared is Alloc without a copy of the shape, which must not be modified afterwards.
func AllocShared(dtype DType, shape Shape) (Tensor, error) {
	size, err := byteSize(dtype, shape)
	if err != nil {
		return Tensor{}, err
	}
	return allocate(dtype, shape, size)
}

// allocate returns a tensor of size bytes, counted as byteSize does.
func allocate(dtype DType, shape Shape, size int) (Tensor, error) {
	t, ok := Tensor{dtype: dtype, shape: shape}, false
	switch dtype {
	case String:
		t.buf, ok = newValues[string](size / 8)
	case Resource:
		t.buf, ok = newValues[*Handle](size / 8)
	case Variant:
		t.buf, ok = newValues[VariantValue](size / 8)
	default:
		if t.buf, ok = newBuffer(size); ok {
			t.mem = t.buf.mem[:size:size]
		}
	}
	if !ok {
		return Tensor{}, exhausted(dtype, shape)
	}
	return t, nil
}

// newValues returns a buffer of n Go values, or false if there is no memory for it.
func newValues[T any](n int) (*Buffer, bool) {
	b := &Buffer{class: classUncounted}
	return b, allocIfAvailable(n*int(unsafe.Sizeof(*new(T))), func() { b.vals = make([]T, n) })
}

// Zeros returns a tensor with one reference whose elements are zero, false, or empty.
func Zeros(dtype DType, shape Shape) (Tensor, error) {
	t, err := Alloc(dtype, shape)
	if err == nil {
		bulk.Clear(t.mem)
	}
	return t, err
}

// FromSlice returns a tensor whose elements are vals, which must not be modified while the tensor
// is used. The number of values must match the shape.
func FromSlice[T Elem](shape Shape, vals []T) (Tensor, error) {
	dtype := DTypeOf[T]()
	if _, err := byteSize(dtype, shape); err != nil {
		return Tensor{}, err
	}
	if n := shape.NumElements(); n != int64(len(vals)) {
		return Tensor{}, status.InvalidArgumentf("shape %v needs %d values, got %d", shape, n, len(vals))
	}
	return fromSlice(dtype, slices.Clone(shape), vals), nil
}

func fromSlice[T Elem](dtype DType, shape Shape, vals []T) Tensor {
	t := Tensor{dtype: dtype, shape: shape, buf: &Buffer{class: classUncounted}}
	if size := dtype.Size(); size > 0 {
		t.mem = unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(vals))), len(vals)*size)
		t.buf.mem = t.mem
	} else {
		t.buf.vals = vals
	}
	return t
}

// FromBytes returns a tensor that shares element memory in wire order. mem must hold exactly the
// elements of the shape. buf passes one reference to the tensor; it may be nil for memory that is
// left to the garbage collector. Memory that is not aligned for its type is copied.
func FromBytes(dtype DType, shape Shape, mem []byte, buf *Buffer) (Tensor, error) {
	size, err := byteSize(dtype, shape)
	if err != nil {
		return Tensor{}, err
	}
	if dtype.Size() == 0 || size != len(mem) {
		return Tensor{}, status.InvalidArgumentf("a %v tensor of shape %v is not %d bytes", dtype, shape, len(mem))
	}
	if uintptr(unsafe.Pointer(unsafe.SliceData(mem)))%uintptr(min(dtype.Size(), 8)) != 0 {
		t, err := allocate(dtype, slices.Clone(shape), size)
		if err == nil {
			bulk.Copy(t.mem, mem)
			buf.release()
		}
		return t, err
	}
	if buf == nil {
		buf = &Buffer{class: classUncounted, mem: mem}
	}
	return Tensor{dtype: dtype, shape: slices.Clone(shape), buf: buf, mem: mem}, nil
}

// Scalar returns a scalar tensor.
func Scalar[T Elem](v T) Tensor { return fromSlice(DTypeOf[T](), Shape{}, []T{v}) }

// Vector returns a tensor of rank 1 that shares vals.
func Vector[T Elem](vals ...T) Tensor {
	return fromSlice(DTypeOf[T](), Shape{int64(len(vals))}, vals)
}

// Values returns the elements of t, which have Go type T. They are shared, not copied. It panics if
// T is not the element type of t, because kernels are selected by type before they run.
func Values[T Elem](t *Tensor) []T {
	if want := DTypeOf[T](); want != t.dtype {
		panic(fmt.Sprintf("tensor: elements of a %v tensor taken as %v", t.dtype, want))
	}
	if t.dtype.Size() == 0 {
		return t.buf.vals.([]T)
	}
	var z T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(t.mem))), len(t.mem)/int(unsafe.Sizeof(z)))
}

// Value returns the only element of a tensor with one element.
func Value[T Elem](t *Tensor) T { return Values[T](t)[0] }

// Initialized reports whether t has a type and elements.
func (t *Tensor) Initialized() bool { return t.dtype != Invalid }

// DType returns the element type.
func (t *Tensor) DType() DType { return t.dtype }

// Shape returns the dimensions, which must not be modified.
func (t *Tensor) Shape() Shape { return t.shape }

// Rank returns the number of dimensions.
func (t *Tensor) Rank() int { return len(t.shape) }

// Dim returns the size of dimension i.
func (t *Tensor) Dim(i int) int { return int(t.shape[i]) }

// NumElements returns the number of elements; 0 for an uninitialized tensor.
func (t *Tensor) NumElements() int {
	if t.dtype == Invalid {
		return 0
	}
	return int(t.shape.NumElements())
}

// Bytes returns the shared element memory; nil for strings, resources and variants.
func (t *Tensor) Bytes() []byte { return t.mem }

// ByteSize returns the size of the elements in bytes, including the text of strings.
func (t *Tensor) ByteSize() int64 {
	if t.dtype != String {
		return int64(max(len(t.mem), 8*t.NumElements()*boolToInt(t.mem == nil)))
	}
	n := int64(0)
	for _, s := range Values[string](t) {
		n += int64(len(s)) + 16
	}
	return n
}

// Retain adds a reference to the buffer of t and returns a Tensor that owns it.
func (t *Tensor) Retain() Tensor {
	t.buf.retain()
	return *t
}

// Release ends the reference of t and clears t.
func (t *Tensor) Release() {
	t.buf.release()
	*t = Tensor{}
}

// OnDevice reports whether the elements of t are in the memory of a device that is not a CPU.
// Nothing but kernels of that device and copies can access them.
func (t *Tensor) OnDevice() bool { return t.buf != nil && t.buf.class == classDevice }

// cloneOnDevice takes t by value, so that the tensors that other callers of Clone pass stay on
// their stacks.
func cloneOnDevice(t Tensor) (Tensor, error) {
	return t.buf.vals.(cloner).Clone(&t) //nolint:forcetypeassert // see tensormem.NewDevice
}

// cloner is the owner of memory that the CPU cannot access.
type cloner interface {
	// Clone returns a copy of t in the same memory, with one reference.
	Clone(t *Tensor) (Tensor, error)
}

// Exclusive reports whether the holder of t, which must own a reference, is the only holder of its
// elements and may write to them.
func (t *Tensor) Exclusive() bool { return t.buf.exclusive() }

// setReclaimer implements tensormem.SetReclaimer.
func setReclaimer(tensor any, reclaim *func()) {
	if t := tensor.(*Tensor); t.buf != nil { //nolint:forcetypeassert // see tensormem
		t.buf.reclaim.Store(reclaim)
	}
}

// SharesBuffer reports whether t and u have elements in the same buffer.
func (t *Tensor) SharesBuffer(u *Tensor) bool { return t.buf != nil && t.buf == u.buf }

// WithShape returns t with another shape of the same number of elements. The reference stays with
// t.
func (t *Tensor) WithShape(shape Shape) (Tensor, error) {
	if err := shape.Check(); err != nil {
		return Tensor{}, err
	}
	if shape.NumElements() != t.shape.NumElements() {
		return Tensor{}, status.InvalidArgumentf("cannot reshape a tensor of shape %v to %v", t.shape, shape)
	}
	out := *t
	out.shape = slices.Clone(shape)
	return out, nil
}

// WithDType returns t with its element memory interpreted as another type of the same size. The
// reference stays with t.
func (t *Tensor) WithDType(dtype DType) (Tensor, error) {
	if dtype.Size() == 0 || dtype.Size() != t.dtype.Size() {
		return Tensor{}, status.InvalidArgumentf("cannot read %v elements as %v", t.dtype, dtype)
	}
	out := *t
	out.dtype = dtype
	return out, nil
}

// WithElements returns t with its element memory interpreted as another type and shape of the same
// number of bytes. The reference stays with t.
func (t *Tensor) WithElements(dtype DType, shape Shape) (Tensor, error) {
	size, err := byteSize(dtype, shape)
	if err != nil {
		return Tensor{}, err
	}
	if t.dtype.Size() == 0 || dtype.Size() == 0 || size != len(t.mem) {
		return Tensor{}, status.InvalidArgumentf("cannot read %v elements of shape %v as %v of shape %v", t.dtype, t.shape, dtype, shape)
	}
	return Tensor{dtype: dtype, shape: slices.Clone(shape), buf: t.buf, mem: t.mem}, nil
}

// Rows returns rows lo to hi of the outermost dimension, which share their elements with t. The
// reference stays with t. It panics unless 0 <= lo <= hi <= Dim(0).
func (t *Tensor) Rows(lo, hi int) Tensor {
	shape := slices.Clone(t.shape)
	row := 1
	for _, d := range shape[1:] {
		row *= int(d)
	}
	if lo < 0 || hi < lo || hi > int(shape[0]) {
		panic(fmt.Sprintf("tensor: rows %d to %d of shape %v", lo, hi, t.shape))
	}
	shape[0] = int64(hi - lo)
	out := Tensor{dtype: t.dtype, shape: shape, buf: t.buf}
	lo, hi = lo*row, hi*row
	switch v := t.buf.vals.(type) {
	case []string:
		out.buf = &Buffer{class: classUncounted, vals: v[lo:hi:hi]}
	case []*Handle:
		out.buf = &Buffer{class: classUncounted, vals: v[lo:hi:hi]}
	case []VariantValue:
		out.buf = &Buffer{class: classUncounted, vals: v[lo:hi:hi]}
	default:
		size := t.dtype.Size()
		out.mem = t.mem[lo*size : hi*size : hi*size]
	}
	return out
}

// Clone returns a copy of t, which must be initialized, with its own elements and one reference.
func (t *Tensor) Clone() (Tensor, error) {
	if t.OnDevice() {
		return cloneOnDevice(*t)
	}
	out, err := AllocShared(t.dtype, t.shape)
	if err != nil {
		return Tensor{}, err
	}
	switch to := out.buf.vals.(type) {
	case []string:
		copy(to, t.buf.vals.([]string))
	case []*Handle:
		copy(to, t.buf.vals.([]*Handle))
	case []VariantValue:
		copy(to, t.buf.vals.([]VariantValue))
	default:
		bulk.Copy(out.mem, t.mem)
	}
	return out, nil
}
