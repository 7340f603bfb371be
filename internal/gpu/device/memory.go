package device

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"

	"github.com/weft-ml/weft/internal/gpu/driver"
	"github.com/weft-ml/weft/internal/gpu/pool"
	"github.com/weft-ml/weft/internal/gpu/shadow"
	"github.com/weft-ml/weft/internal/sys/tensormem"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// memory is the memory of a device: the pool that cuts it, and the shadow of its regions. It is the
// pool's source of regions.
type memory struct {
	d      *Device
	pool   *pool.Pool
	shadow *shadow.Range

	garbage garbage
	regions atomic.Pointer[[]region] // in order of start; changed by the pool with its lock held
	live    atomic.Int64             // pieces that tensors hold
	closed  atomic.Bool
}

// region is a piece of memory that the pool has from the driver.
type region struct {
	mem   driver.Mem
	start int // in the shadow
}

// regionAlignment is the alignment of regions in the shadow, in bytes.
const regionAlignment = 1 << 16

func newMemory(d *Device) (*memory, error) {
	m := &memory{d: d}
	m.regions.Store(new([]region))
	// Regions come and go, so the shadow needs more addresses than they have bytes.
	var err error
	if m.shadow, err = shadow.New(2*int(d.opts.Memory) + 64*regionAlignment); err != nil {
		return nil, status.Internalf("%s: %v", d.opts.Name, err)
	}
	m.pool = pool.New(m, pool.Options{
		Name: d.allocator, Limit: d.opts.Memory, Largest: d.info.LargestAlloc, Growth: d.opts.Growth, Retry: d.opts.Retry,
	})
	return m, nil
}

// Alloc implements pool.Source.
func (m *memory) Alloc(size int) (driver.Mem, error) {
	regions := slices.Clone(*m.regions.Load())
	at, start := len(regions), 0
	for i, r := range regions {
		if r.start-start >= size {
			at = i
			break
		}
		start = (r.start + r.mem.Size + regionAlignment - 1) &^ (regionAlignment - 1)
	}
	if start+size > m.shadow.Size() {
		return driver.Mem{}, fmt.Errorf("no addresses for %d bytes: %w", size, driver.ErrOutOfMemory)
	}
	mem, err := m.d.dev.Alloc(size)
	if err != nil {
		return mem, err
	}
	regions = slices.Insert(regions, at, region{mem, start})
	m.regions.Store(&regions)
	return mem, nil
}

// Free implements pool.Source.
func (m *memory) Free(mem driver.Mem) error {
	for _, s := range m.d.streams() {
		if err := s.drain(); err != nil {
			return err
		}
	}
	if err := m.d.dev.Free(mem); err != nil {
		return m.d.check(err)
	}
	regions := slices.DeleteFunc(slices.Clone(*m.regions.Load()), func(r region) bool { return r.mem.Base == mem.Base })
	m.regions.Store(&regions)
	return nil
}

// close returns the regions to the driver. The streams have ended. Tensors that still exist have no
// memory from here on; their addresses stay reserved.
func (m *memory) close() {
	m.closed.Store(true)
	for _, r := range *m.regions.Load() {
		if err := m.d.dev.Free(r.mem); err != nil {
			_ = m.d.check(err) // kept as the error of the device
		}
	}
	if m.live.Load() == 0 {
		_ = m.shadow.Close() // the addresses stay reserved
	}
}

// place returns the shadow of a piece.
func (m *memory) place(mem driver.Mem, size int) []byte {
	for _, r := range *m.regions.Load() {
		if r.mem.Base == mem.Base {
			return m.shadow.Bytes(r.start+mem.Off-r.mem.Off, size)
		}
	}
	panic("device: memory of no region")
}

// find returns the memory of a shadow.
func (m *memory) find(b []byte) (driver.Mem, bool) {
	off, ok := m.shadow.Offset(b)
	if !ok {
		return driver.Mem{}, false
	}
	regions := *m.regions.Load()
	i, _ := slices.BinarySearchFunc(regions, off, func(r region, off int) int {
		if r.start <= off {
			return -1
		}
		return 1
	})
	r := &regions[i-1]
	return r.mem.Slice(off-r.start, len(b)), true
}

// block is a piece of memory that a tensor holds. It is freed once.
type block struct {
	m       *memory
	mem     driver.Mem
	freed   atomic.Bool
	cleanup runtime.Cleanup
}

func (b *block) free() {
	if b.freed.CompareAndSwap(false, true) {
		b.m.live.Add(-1)
		if !b.m.closed.Load() {
			b.m.pool.Free(b.mem)
		}
	}
}

// released is called at the last release of the tensor's buffer.
func (b *block) released() {
	b.cleanup.Stop()
	b.free()
}

// Alloc returns a tensor on the device. Its elements are undefined. The shape is copied. The error
// has the code ResourceExhausted for lack of memory.
func (d *Device) Alloc(dtype tensor.DType, shape tensor.Shape) (tensor.Tensor, error) {
	return d.AllocIn(context.Background(), d.opts.Name, dtype, shape)
}

// AllocIn is Alloc with a context that ends the wait for memory that others free, and with the name
// that the device has for the caller.
func (d *Device) AllocIn(ctx context.Context, name string, dtype tensor.DType, shape tensor.Shape) (tensor.Tensor, error) {
	t, err := d.alloc(dtype, shape, func(size int) (driver.Mem, error) { return d.memory.take(ctx, size) })
	switch {
	case err == nil:
		return t, nil
	case errors.Is(err, driver.ErrOutOfMemory):
		return t, status.ResourceExhaustedf("OOM when allocating tensor with shape%v and type %v on %s by allocator %s",
			shape, dtype, name, d.allocator)
	case ctx.Err() != nil:
		return t, status.FromContext(ctx, "waiting for memory of "+d.opts.Name)
	}
	return t, err
}

// alloc returns a tensor in memory from take. The error wraps driver.ErrOutOfMemory for lack of
// memory.
func (d *Device) alloc(dtype tensor.DType, shape tensor.Shape, take func(size int) (driver.Mem, error)) (tensor.Tensor, error) {
	if dtype.Size() == 0 {
		return tensor.Tensor{}, status.InvalidArgumentf("%s cannot have a tensor of type %v in its memory", d.opts.Name, dtype)
	}
	if err := shape.Check(); err != nil {
		return tensor.Tensor{}, err
	}
	n, width := shape.NumElements(), int64(dtype.Size())
	if n > d.opts.Memory/width {
		return tensor.Tensor{}, driver.ErrOutOfMemory
	}
	b := &block{m: d.memory}
	var mem []byte
	if size := int(n * width); size > 0 {
		var err error
		if b.mem, err = take(size); err != nil {
			return tensor.Tensor{}, err
		}
		mem = d.memory.place(b.mem, size)
	} else {
		b.freed.Store(true)
		mem = d.memory.shadow.Bytes(0, 0)
	}
	if !b.freed.Load() {
		d.memory.live.Add(1)
	}
	buf := tensormem.NewDevice(mem, d, b.released).(*tensor.Buffer) //nolint:forcetypeassert // see tensormem
	b.cleanup = runtime.AddCleanup(buf, (*block).free, b)
	return tensor.FromBytes(dtype, shape, mem, buf)
}

// Scratch returns size bytes of memory as a tensor of type uint8, for a library. It does not wait
// for memory that others free: the caller may hold the lock of a stream, which they need, and can
// use less memory. The caller releases it when the work that uses it has been queued.
func (d *Device) Scratch(size int) (tensor.Tensor, error) {
	return d.alloc(tensor.Uint8, tensor.Shape{int64(size)}, d.memory.pool.TryAlloc)
}

// Of returns the device whose memory a tensor is in, or nil for memory of the host.
func Of(t *tensor.Tensor) *Device {
	if !t.OnDevice() {
		return nil
	}
	d, _ := tensormem.DeviceOf(t).(*Device)
	return d
}

// Mem returns the memory of a tensor on the device. It panics if the tensor is elsewhere, which is
// a mistake of the kernel that passes it.
func (d *Device) Mem(t *tensor.Tensor) driver.Mem {
	if t.OnDevice() {
		if mem, ok := d.memory.find(t.Bytes()); ok {
			return mem
		}
	}
	panic("device: a tensor of type " + t.DType().String() + " is not in the memory of " + d.opts.Name)
}
