//go:build gpu

package opencl

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"github.com/weft-ml/weft/internal/gpu/dl"
	"github.com/weft-ml/weft/internal/gpu/driver"
)

// Parameters of clGetDeviceInfo.
const (
	infoComputeUnits    = 0x1002
	infoMaxWorkGroup    = 0x1004
	infoMaxAlloc        = 0x1010
	infoGlobalMem       = 0x101f
	infoLocalMem        = 0x1023
	infoName            = 0x102b
	infoVendor          = 0x102c
	infoDriverVersion   = 0x102d
	infoVersion         = 0x102f
	infoDouble          = 0x1032
	infoUnified         = 0x1035
	infoCapabilityMajor = 0x4000 // of NVIDIA
	infoCapabilityMinor = 0x4001 // of NVIDIA
	infoWarpSize        = 0x4003 // of NVIDIA
	infoWavefrontSize   = 0x4043 // of AMD
	infoPCI             = 0x410f // four numbers: domain, bus, device, function
	memoryReadWrite     = 1
	memoryOfHost        = 1 << 4
	mapReadAndWrite     = 3
	queueWithTimes      = 1 << 1
)

// device is one OpenCL device. It has a context of its own, so that memory belongs to the device as
// with CUDA, and copies between devices are explicit.
type device struct {
	id, context uintptr
	info        driver.Info

	mu     sync.Mutex
	used   int64             // bytes in regions; guarded by mu
	pinned map[*byte]mapping // page-locked memory, by its start; guarded by mu

	blasOnce sync.Once
	blas     *blas
	blasErr  error
}

// mapping is a buffer that is mapped to memory of the host.
type mapping struct{ buffer, queue uintptr }

func newDevice(id uintptr) (*device, error) {
	d := &device{id: id, pinned: map[*byte]mapping{}}
	var status int32
	d.context = dl.Call(cl.CreateContext, 0, 1, uintptr(unsafe.Pointer(&id)), 0, 0, uintptr(unsafe.Pointer(&status)))
	if status != 0 {
		return nil, &statusError{"clCreateContext", status}
	}
	d.describe()
	return d, nil
}

// property returns what the device says of itself, or nothing if it does not know the parameter.
func (d *device) property(what uintptr) []byte {
	buf := make([]byte, 1024)
	var n uint64
	if call("clGetDeviceInfo", cl.GetDeviceInfo, d.id, what, uintptr(len(buf)), uintptr(unsafe.Pointer(&buf[0])), uintptr(unsafe.Pointer(&n))) != nil {
		return nil
	}
	return buf[:n]
}

func (d *device) number(what uintptr) int64 {
	return int64(binary.LittleEndian.Uint64(append(d.property(what), make([]byte, 8)...)))
}

func (d *device) describe() {
	d.info = driver.Info{
		Name: dl.Cut(d.property(infoName)), Vendor: dl.Cut(d.property(infoVendor)),
		Driver:     dl.Cut(d.property(infoVersion)) + ", " + dl.Cut(d.property(infoDriverVersion)),
		Capability: [2]int{int(d.number(infoCapabilityMajor)), int(d.number(infoCapabilityMinor))},
		Memory:     d.number(infoGlobalMem), LargestAlloc: d.number(infoMaxAlloc),
		Multiprocessors: int(d.number(infoComputeUnits)), MaxGroup: int(d.number(infoMaxWorkGroup)),
		SharedMemory: int(d.number(infoLocalMem)), SubgroupSize: int(max(d.number(infoWarpSize), d.number(infoWavefrontSize))),
		Language: driver.Source, Double: d.number(infoDouble) != 0, Unified: d.number(infoUnified)&1 != 0,
	}
	if pci := d.property(infoPCI); len(pci) == 16 {
		at := func(i int) uint32 { return binary.LittleEndian.Uint32(pci[4*i:]) }
		d.info.BusID = fmt.Sprintf("%04x:%02x:%02x.%x", at(0), at(1), at(2), at(3))
	}
}

func (d *device) Info() driver.Info { return d.info }

// FreeMemory knows the memory of this process only.
func (d *device) FreeMemory() (int64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.info.Memory - d.used, nil
}

func (d *device) Alloc(size int) (driver.Mem, error) {
	// Some implementations give more than the device has, or than a buffer may have.
	if int64(size) > d.info.LargestAlloc {
		return driver.Mem{}, fmt.Errorf("OpenCL: %d bytes, of at most %d: %w", size, d.info.LargestAlloc, driver.ErrOutOfMemory)
	}
	if free, _ := d.FreeMemory(); int64(size) > free {
		return driver.Mem{}, fmt.Errorf("OpenCL: %d bytes, of %d that are free: %w", size, free, driver.ErrOutOfMemory)
	}
	buffer, err := d.buffer(size, memoryReadWrite)
	if err != nil {
		return driver.Mem{}, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.used += int64(size)
	return driver.Mem{Base: buffer, Size: size}, nil
}

func (d *device) buffer(size int, flags uintptr) (uintptr, error) {
	var status int32
	buffer := dl.Call(cl.CreateBuffer, d.context, flags, uintptr(size), 0, uintptr(unsafe.Pointer(&status)))
	if status != 0 {
		return 0, &statusError{fmt.Sprintf("clCreateBuffer of %d bytes", size), status}
	}
	return buffer, nil
}

func (d *device) Free(m driver.Mem) error {
	if err := call("clReleaseMemObject", cl.ReleaseMemObject, m.Base); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.used -= int64(m.Size)
	return nil
}

// Pinned maps a buffer that the implementation keeps in memory of the host.
func (d *device) Pinned(size int) ([]byte, error) {
	buffer, err := d.buffer(size, memoryReadWrite|memoryOfHost)
	if err != nil {
		return nil, err
	}
	queue, err := d.queue()
	if err != nil {
		return nil, errors.Join(err, call("clReleaseMemObject", cl.ReleaseMemObject, buffer))
	}
	var status int32
	at := dl.Call(cl.EnqueueMapBuffer, queue, buffer, 1, mapReadAndWrite, 0, uintptr(size), 0, 0, 0, uintptr(unsafe.Pointer(&status)))
	if status != 0 {
		dl.Call(cl.ReleaseCommandQueue, queue)
		return nil, errors.Join(&statusError{"clEnqueueMapBuffer", status}, call("clReleaseMemObject", cl.ReleaseMemObject, buffer))
	}
	start := *(**byte)(unsafe.Pointer(&at))
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pinned[start] = mapping{buffer, queue}
	return unsafe.Slice(start, size), nil
}

func (d *device) Unpin(b []byte) error {
	start := unsafe.SliceData(b)
	d.mu.Lock()
	m, ok := d.pinned[start]
	delete(d.pinned, start)
	d.mu.Unlock()
	if !ok {
		return errors.New("OpenCL: Unpin of memory that is not pinned")
	}
	return errors.Join(
		call("clEnqueueUnmapMemObject", cl.EnqueueUnmapMemObject, m.queue, m.buffer, uintptr(unsafe.Pointer(start)), 0, 0, 0),
		call("clFinish", cl.Finish, m.queue),
		call("clReleaseCommandQueue", cl.ReleaseCommandQueue, m.queue),
		call("clReleaseMemObject", cl.ReleaseMemObject, m.buffer),
	)
}

// CanCopy is false: memory belongs to the context of one device.
func (*device) CanCopy(driver.Device) bool { return false }

// queue makes a command queue whose work runs in order.
func (d *device) queue() (uintptr, error) {
	var status int32
	q := dl.Call(cl.CreateCommandQueue, d.context, d.id, queueWithTimes, uintptr(unsafe.Pointer(&status)))
	if status != 0 {
		return 0, &statusError{"clCreateCommandQueue", status}
	}
	return q, nil
}

func (*device) DNN() (driver.DNN, error) {
	return nil, errors.New("there is no library of convolutions for OpenCL")
}
