//go:build gpu

package cuda

import (
	"fmt"
	"sync"
	"unsafe"

	"github.com/weft-ml/weft/internal/gpu/dl"
	"github.com/weft-ml/weft/internal/gpu/driver"
)

func init() { driver.Register("cuda", Open) }

// cu are the functions of libcuda.
var cu struct {
	Init, DriverGetVersion, DeviceGetCount, DeviceGet, DeviceGetName, DeviceTotalMem_v2, DeviceGetAttribute,
	DeviceGetPCIBusId, DevicePrimaryCtxRetain, CtxSetCurrent, MemGetInfo_v2, MemAlloc_v2, MemFree_v2, MemHostAlloc,
	MemFreeHost, ModuleLoadDataEx, ModuleGetFunction, LaunchKernel, StreamCreate, StreamDestroy_v2, StreamSynchronize,
	StreamWaitEvent, MemcpyHtoDAsync_v2, MemcpyDtoHAsync_v2, MemcpyDtoDAsync_v2, MemcpyPeerAsync, MemsetD8Async,
	DeviceCanAccessPeer, CtxEnablePeerAccess, EventCreate, EventRecord, EventQuery, EventSynchronize, EventElapsedTime,
	EventDestroy_v2, GetErrorName, GetErrorString uintptr
}

// openLibrary opens and initializes libcuda once.
var openLibrary = sync.OnceValue(func() error {
	l, err := dl.Open("WEFT_CUDA", "libcuda.so.1")
	if err != nil {
		return err
	}
	if err := l.Bind("cu", &cu); err != nil {
		return err
	}
	return call("cuInit", cu.Init, 0)
})

// Statuses that are handled.
const (
	statusOutOfMemory       = 2
	statusPeerAccessEnabled = 704
	statusNotReady          = 600
)

// statusError is a status of libcuda other than success.
type statusError struct {
	call string
	code uint32
}

func (e *statusError) Error() string {
	name, text := new(uintptr), new(uintptr)
	dl.Call(cu.GetErrorName, uintptr(e.code), uintptr(unsafe.Pointer(name)))
	dl.Call(cu.GetErrorString, uintptr(e.code), uintptr(unsafe.Pointer(text)))
	return fmt.Sprintf("CUDA: %s: %s (%d): %s", e.call, dl.Text(*name), e.code, dl.Text(*text))
}

func (e *statusError) Unwrap() error {
	if e.code == statusOutOfMemory {
		return driver.ErrOutOfMemory
	}
	return nil
}

// call calls a function that returns a status. See package dl for pointers in args.
//
//go:uintptrescapes
func call(name string, fn uintptr, args ...uintptr) error {
	if code := uint32(dl.Call(fn, args...)); code != 0 {
		return &statusError{name, code}
	}
	return nil
}

// Open lists the GPUs.
func Open() ([]driver.Device, error) {
	if err := openLibrary(); err != nil {
		return nil, err
	}
	var n int32
	if err := call("cuDeviceGetCount", cu.DeviceGetCount, uintptr(unsafe.Pointer(&n))); err != nil {
		return nil, err
	}
	var devices []driver.Device
	for i := range n {
		d, err := newDevice(int(i))
		if err != nil {
			return nil, err
		}
		devices = append(devices, d)
	}
	return devices, nil
}
