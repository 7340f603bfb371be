//go:build gpu

package cuda

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"unsafe"

	"github.com/weft-ml/weft/internal/gpu/dl"
	"github.com/weft-ml/weft/internal/gpu/driver"
)

// device is one GPU with its primary context.
type device struct {
	id      int32
	context uintptr
	info    driver.Info

	mu     sync.Mutex
	pinned map[*byte]bool     // starts of page-locked memory; guarded by mu
	peers  map[*device]bool   // devices whose memory the context can access; guarded by mu
	events map[bool][]uintptr // unused events, by timed or not; guarded by mu

	blasOnce sync.Once
	blas     *blas
	blasErr  error
	dnnOnce  sync.Once
	dnn      *dnn
	dnnErr   error
}

// Attributes of a device.
const (
	attributeMaxThreads      = 1
	attributeSharedMemory    = 8
	attributeWarpSize        = 10
	attributeMultiprocessors = 16
	attributeIntegrated      = 18
	attributeMajor           = 75
	attributeMinor           = 76
)

func newDevice(number int) (*device, error) {
	d := &device{pinned: map[*byte]bool{}, peers: map[*device]bool{}, events: map[bool][]uintptr{}}
	if err := call("cuDeviceGet", cu.DeviceGet, uintptr(unsafe.Pointer(&d.id)), uintptr(number)); err != nil {
		return nil, err
	}
	if err := call("cuDevicePrimaryCtxRetain", cu.DevicePrimaryCtxRetain, uintptr(unsafe.Pointer(&d.context)), uintptr(d.id)); err != nil {
		return nil, err
	}
	return d, d.describe()
}

// describe fills d.info.
func (d *device) describe() error {
	name, bus := make([]byte, 256), make([]byte, 32)
	var memory uint64
	var version int32
	err := errors.Join(
		call("cuDeviceGetName", cu.DeviceGetName, uintptr(unsafe.Pointer(&name[0])), uintptr(len(name)), uintptr(d.id)),
		call("cuDeviceGetPCIBusId", cu.DeviceGetPCIBusId, uintptr(unsafe.Pointer(&bus[0])), uintptr(len(bus)), uintptr(d.id)),
		call("cuDeviceTotalMem", cu.DeviceTotalMem_v2, uintptr(unsafe.Pointer(&memory)), uintptr(d.id)),
		call("cuDriverGetVersion", cu.DriverGetVersion, uintptr(unsafe.Pointer(&version))),
	)
	attribute := func(what uintptr) int {
		var v int32
		err = errors.Join(err, call("cuDeviceGetAttribute", cu.DeviceGetAttribute, uintptr(unsafe.Pointer(&v)), what, uintptr(d.id)))
		return int(v)
	}
	d.info = driver.Info{
		Name: dl.Cut(name), Vendor: "NVIDIA", BusID: dl.Cut(bus),
		Capability: [2]int{attribute(attributeMajor), attribute(attributeMinor)},
		Driver:     fmt.Sprintf("CUDA %d.%d", version/1000, version%1000/10),
		Memory:     int64(memory), LargestAlloc: int64(memory),
		Multiprocessors: attribute(attributeMultiprocessors), MaxGroup: attribute(attributeMaxThreads),
		SharedMemory: attribute(attributeSharedMemory), SubgroupSize: attribute(attributeWarpSize),
		Language: driver.PTX, Double: true, Unified: attribute(attributeIntegrated) != 0,
	}
	return err
}

// enter makes the device the thread's until leave is called.
func (d *device) enter() {
	runtime.LockOSThread()
	dl.Call(cu.CtxSetCurrent, d.context)
}

func leave() { runtime.UnlockOSThread() }

func (d *device) Info() driver.Info { return d.info }

func (d *device) FreeMemory() (int64, error) {
	d.enter()
	defer leave()
	var free, total uint64
	err := call("cuMemGetInfo", cu.MemGetInfo_v2, uintptr(unsafe.Pointer(&free)), uintptr(unsafe.Pointer(&total)))
	return int64(free), err
}

func (d *device) Alloc(size int) (driver.Mem, error) {
	d.enter()
	defer leave()
	var at uintptr
	if err := call(fmt.Sprintf("cuMemAlloc of %d bytes", size), cu.MemAlloc_v2, uintptr(unsafe.Pointer(&at)), uintptr(size)); err != nil {
		return driver.Mem{}, err
	}
	return driver.Mem{Base: at, Size: size}, nil
}

func (d *device) Free(m driver.Mem) error {
	d.enter()
	defer leave()
	return call("cuMemFree", cu.MemFree_v2, m.Base)
}

// portable makes page-locked memory so for all contexts.
const portable = 1

func (d *device) Pinned(size int) ([]byte, error) {
	d.enter()
	defer leave()
	var at uintptr
	if err := call(fmt.Sprintf("cuMemHostAlloc of %d bytes", size), cu.MemHostAlloc, uintptr(unsafe.Pointer(&at)), uintptr(size), portable); err != nil {
		return nil, err
	}
	start := *(**byte)(unsafe.Pointer(&at))
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pinned[start] = true
	return unsafe.Slice(start, size), nil
}

func (d *device) Unpin(b []byte) error {
	start := unsafe.SliceData(b)
	d.mu.Lock()
	known := d.pinned[start]
	delete(d.pinned, start)
	d.mu.Unlock()
	if !known {
		return errors.New("CUDA: Unpin of memory that is not pinned")
	}
	d.enter()
	defer leave()
	return call("cuMemFreeHost", cu.MemFreeHost, uintptr(unsafe.Pointer(start)))
}

// CanCopy is true for all devices of this driver. Where the hardware has no path between them, the
// library copies by way of the host.
func (d *device) CanCopy(from driver.Device) bool {
	_, ok := from.(*device)
	return ok
}

// access lets the context use memory of a peer, if the hardware can. Copies are faster then.
func (d *device) access(peer *device) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.peers[peer] || peer == d {
		return
	}
	d.peers[peer] = true
	var can int32
	if call("cuDeviceCanAccessPeer", cu.DeviceCanAccessPeer, uintptr(unsafe.Pointer(&can)), uintptr(d.id), uintptr(peer.id)) == nil && can != 0 {
		dl.Call(cu.CtxEnablePeerAccess, peer.context, 0) // without it, copies take another way
	}
}

// newEvent returns an event that was used before, or a new one.
func (d *device) newEvent(timed bool) (uintptr, error) {
	d.mu.Lock()
	if spare := d.events[timed]; len(spare) > 0 {
		handle := spare[len(spare)-1]
		d.events[timed] = spare[:len(spare)-1]
		d.mu.Unlock()
		return handle, nil
	}
	d.mu.Unlock()
	var handle uintptr
	flags := uintptr(withoutTime)
	if timed {
		flags = 0
	}
	err := call("cuEventCreate", cu.EventCreate, uintptr(unsafe.Pointer(&handle)), flags)
	return handle, err
}

// maxSpareEvents bounds the events that are kept for later.
const maxSpareEvents = 1024

func (d *device) dropEvent(handle uintptr, timed bool) {
	d.mu.Lock()
	if spare := d.events[timed]; len(spare) < maxSpareEvents {
		d.events[timed] = append(spare, handle)
		d.mu.Unlock()
		return
	}
	d.mu.Unlock()
	dl.Call(cu.EventDestroy_v2, handle)
}
