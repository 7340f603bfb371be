package hostgpu

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/weft-ml/weft/internal/gpu/driver"
)

// Options say which devices [Open] makes.
type Options struct {
	Devices int           // number of devices
	Memory  int64         // bytes of each; 1 GiB if 0
	Largest int64         // bytes of the largest region; Memory if 0
	Delay   time.Duration // longest delay of a piece of work; none if 0
	Peers   bool          // devices can copy from one another
}

// garbage is the largest part of new memory, in bytes, that is overwritten. More takes noticeable
// time when a pool allocates all of a device.
const garbage = 16 << 20

// Open returns new devices.
func Open(o Options) []driver.Device {
	if o.Memory == 0 {
		o.Memory = 1 << 30
	}
	if o.Largest == 0 {
		o.Largest = o.Memory
	}
	devices := make([]driver.Device, o.Devices)
	for i := range devices {
		// Handles of two devices differ, so that memory of another device is not taken for own.
		devices[i] = &device{number: i, options: o, last: uintptr(i+1) << 32, regions: map[uintptr][]byte{}}
	}
	return devices
}

// device is a GPU in software. mu is never held while work runs.
type device struct {
	number  int
	options Options

	mu      sync.Mutex
	used    int64              // bytes in regions; guarded by mu
	last    uintptr            // handle of the newest region; guarded by mu
	regions map[uintptr][]byte // by handle; guarded by mu
	pinned  map[*byte]int      // length of pinned memory, by its start; guarded by mu
	failure error              // first error of work; guarded by mu
}

func (d *device) Info() driver.Info {
	return driver.Info{
		Name: fmt.Sprintf("software device %d", d.number), Vendor: "Weft", BusID: fmt.Sprintf("0000:%02x:00.0", d.number+1),
		Capability: [2]int{0, 0}, Driver: "1", Memory: d.options.Memory, LargestAlloc: d.options.Largest, Multiprocessors: 16,
		MaxGroup: 1024, SharedMemory: 48 << 10, SubgroupSize: 1, Language: driver.Go, Double: true,
	}
}

func (d *device) FreeMemory() (int64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.options.Memory - d.used, d.failure
}

func (d *device) Alloc(size int) (driver.Mem, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch free := d.options.Memory - d.used; {
	case d.failure != nil:
		return driver.Mem{}, d.failure
	case size <= 0:
		return driver.Mem{}, fmt.Errorf("hostgpu: Alloc of %d bytes", size)
	case int64(size) > d.options.Largest:
		return driver.Mem{}, fmt.Errorf("hostgpu: %d bytes, of at most %d: %w", size, d.options.Largest, driver.ErrOutOfMemory)
	case int64(size) > free:
		return driver.Mem{}, fmt.Errorf("hostgpu: %d bytes, of %d that are free: %w", size, free, driver.ErrOutOfMemory)
	}
	d.used += int64(size)
	d.last++
	region := make([]byte, size)
	for i := range region[:min(size, garbage)] {
		region[i] = 0xa5
	}
	d.regions[d.last] = region
	return driver.Mem{Base: d.last, Size: size}, nil
}

func (d *device) Free(m driver.Mem) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	region, ok := d.regions[m.Base]
	if !ok || m.Off != 0 || m.Size != len(region) {
		return fmt.Errorf("hostgpu: Free of %+v, which is not a region of device %d", m, d.number)
	}
	d.used -= int64(len(region))
	delete(d.regions, m.Base)
	return d.failure
}

func (d *device) Pinned(size int) ([]byte, error) {
	if size <= 0 {
		return nil, fmt.Errorf("hostgpu: Pinned of %d bytes", size)
	}
	b := make([]byte, size)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.pinned == nil {
		d.pinned = map[*byte]int{}
	}
	d.pinned[&b[0]] = size
	return b, d.failure
}

func (d *device) Unpin(b []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(b) == 0 || d.pinned[&b[0]] != len(b) {
		return errors.New("hostgpu: Unpin of memory that is not pinned")
	}
	delete(d.pinned, &b[0])
	return d.failure
}

func (d *device) CanCopy(from driver.Device) bool {
	_, ok := from.(*device)
	return ok && d.options.Peers
}

func (d *device) BLAS() (driver.BLAS, error) { return nil, errors.New("hostgpu has no BLAS") }
func (d *device) DNN() (driver.DNN, error)   { return nil, errors.New("hostgpu has no DNN") }

// bytes returns the memory of a piece.
func (d *device) bytes(m driver.Mem) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	region, ok := d.regions[m.Base]
	switch {
	case !ok && m.Size == 0:
		return nil, nil
	case !ok:
		return nil, fmt.Errorf("hostgpu: device %d: work on memory %+v, which was freed or is another device's", d.number, m)
	case m.Off < 0 || m.Size < 0 || m.Off > len(region) || m.Size > len(region)-m.Off:
		return nil, fmt.Errorf("hostgpu: device %d: work on %+v, outside a region of %d bytes", d.number, m, len(region))
	}
	return region[m.Off : m.Off+m.Size : m.Off+m.Size], nil
}

// fail keeps the first error of work on the device.
func (d *device) fail(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failure == nil {
		d.failure = err
	}
}

// failed returns the first error of work on the device.
func (d *device) failed() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.failure
}
