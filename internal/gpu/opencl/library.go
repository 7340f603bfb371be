//go:build gpu

package opencl

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"unsafe"

	"github.com/weft-ml/weft/internal/gpu/dl"
	"github.com/weft-ml/weft/internal/gpu/driver"
)

func init() { driver.Register("opencl", Open) }

// cl are the functions of libOpenCL.
var cl struct {
	GetPlatformIDs, GetDeviceIDs, GetDeviceInfo, CreateContext, CreateCommandQueue, ReleaseCommandQueue, CreateBuffer,
	ReleaseMemObject, CreateProgramWithSource, BuildProgram, GetProgramBuildInfo, ReleaseProgram, CreateKernel, SetKernelArg,
	EnqueueNDRangeKernel, EnqueueReadBuffer, EnqueueWriteBuffer, EnqueueCopyBuffer, EnqueueFillBuffer, EnqueueMapBuffer,
	EnqueueUnmapMemObject, EnqueueMarkerWithWaitList, EnqueueBarrierWithWaitList, GetEventInfo, GetEventProfilingInfo,
	WaitForEvents, ReleaseEvent, Finish, Flush uintptr
}

var openLibrary = sync.OnceValue(func() error {
	l, err := dl.Open("WEFT_OPENCL", "libOpenCL.so.1", "libOpenCL.so")
	if err != nil {
		return err
	}
	return l.Bind("cl", &cl)
})

// Statuses that mean that memory is missing.
const (
	statusAllocationFailure = -4
	statusOutOfResources    = -5
	statusOutOfHostMemory   = -6
	statusBufferSize        = -61
)

// statusError is a status of OpenCL other than success.
type statusError struct {
	call string
	code int32
}

func (e *statusError) Error() string { return fmt.Sprintf("OpenCL: %s: status %d", e.call, e.code) }

func (e *statusError) Unwrap() error {
	switch e.code {
	case statusAllocationFailure, statusOutOfResources, statusOutOfHostMemory, statusBufferSize:
		return driver.ErrOutOfMemory
	}
	return nil
}

func check(name string, r uintptr) error {
	if code := int32(r); code != 0 {
		return &statusError{name, code}
	}
	return nil
}

// call calls a function that returns a status. See package dl for pointers in args.
//
//go:uintptrescapes
func call(name string, fn uintptr, args ...uintptr) error { return check(name, dl.Call(fn, args...)) }

// Types of devices.
const (
	typeCPU         = 1 << 1
	typeGPU         = 1 << 2
	typeAccelerator = 1 << 3
)

// Open lists the devices of all platforms.
func Open() ([]driver.Device, error) {
	if err := openLibrary(); err != nil {
		return nil, err
	}
	var n uint32
	if r := int32(dl.Call(cl.GetPlatformIDs, 0, 0, uintptr(unsafe.Pointer(&n)))); r != 0 || n == 0 {
		return nil, fmt.Errorf("libOpenCL is there, but no platform (status %d): install the vendor's driver for OpenCL", r)
	}
	platforms := make([]uintptr, n)
	if err := call("clGetPlatformIDs", cl.GetPlatformIDs, uintptr(n), uintptr(unsafe.Pointer(&platforms[0])), 0); err != nil {
		return nil, err
	}
	types := uintptr(typeGPU | typeAccelerator)
	if os.Getenv("WEFT_OPENCL_CPU") == "1" {
		types |= typeCPU
	}
	var devices []driver.Device
	for _, platform := range platforms {
		ids, err := deviceIDs(platform, types)
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			d, err := newDevice(id)
			if err != nil {
				return nil, err
			}
			devices = append(devices, d)
		}
	}
	if len(devices) == 0 {
		return nil, errors.New("libOpenCL is there, but no GPU (WEFT_OPENCL_CPU=1 takes processors, too)")
	}
	return devices, nil
}

// deviceIDs lists the devices of a platform. A platform without any is not an error.
func deviceIDs(platform, types uintptr) ([]uintptr, error) {
	var n uint32
	if r := int32(dl.Call(cl.GetDeviceIDs, platform, types, 0, 0, uintptr(unsafe.Pointer(&n)))); r != 0 || n == 0 {
		return nil, nil
	}
	ids := make([]uintptr, n)
	return ids, call("clGetDeviceIDs", cl.GetDeviceIDs, platform, types, uintptr(n), uintptr(unsafe.Pointer(&ids[0])), 0)
}
