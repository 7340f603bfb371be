//go:build gpu

package opencl

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"unsafe"

	"github.com/weft-ml/weft/internal/gpu/dl"
	"github.com/weft-ml/weft/internal/gpu/driver"
)

const (
	infoBuildLog = 0x1183
	// logSize is the room for what the compiler says, in bytes. The rest is cut.
	logSize = 64 << 10
	// buildOptions make division and square root of float32 exact, as on CPUs.
	buildOptions = "-cl-std=CL1.2 -cl-fp32-correctly-rounded-divide-sqrt"
	// plainOptions are for devices that refuse the other ones.
	plainOptions = "-cl-std=CL1.2"
)

type module struct {
	device  *device
	program uintptr
}

// Load compiles OpenCL C.
func (d *device) Load(text string, defines ...string) (driver.Module, error) {
	var status int32
	source := dl.CString(text)
	line := uintptr(unsafe.Pointer(&source[0])) // on the heap: CString allocates there
	handle := dl.Call(cl.CreateProgramWithSource, d.context, 1, uintptr(unsafe.Pointer(&line)), 0, uintptr(unsafe.Pointer(&status)))
	runtime.KeepAlive(source)
	if status != 0 {
		return nil, &statusError{"clCreateProgramWithSource", status}
	}
	var b strings.Builder
	for _, def := range defines {
		b.WriteString(" -D" + def)
	}
	err := d.build(handle, buildOptions+b.String())
	var e *statusError
	if errors.As(err, &e) && e.code == statusInvalidBuildOptions {
		err = d.build(handle, plainOptions+b.String())
	}
	if err != nil {
		return nil, errors.Join(err, call("clReleaseProgram", cl.ReleaseProgram, handle))
	}
	return &module{d, handle}, nil
}

const statusInvalidBuildOptions = -43

func (d *device) build(program uintptr, options string) error {
	text := dl.CString(options)
	err := call("clBuildProgram", cl.BuildProgram, program, 1, uintptr(unsafe.Pointer(&d.id)), uintptr(unsafe.Pointer(&text[0])), 0, 0)
	if err == nil {
		return nil
	}
	log := make([]byte, logSize)
	var n uint64
	dl.Call(cl.GetProgramBuildInfo, program, d.id, infoBuildLog, uintptr(len(log)), uintptr(unsafe.Pointer(&log[0])), uintptr(unsafe.Pointer(&n)))
	return fmt.Errorf("%w: %s", err, dl.Cut(log))
}

// kernel has a lock, since clSetKernelArg on one kernel must not be called by two threads at once.
type kernel struct {
	device *device
	name   string
	handle uintptr

	mu    sync.Mutex
	value [1]uint64 // where clSetKernelArg reads a number; guarded by mu
	sizes [6]uint64 // work items in all and of a group; guarded by mu
}

func (m *module) Kernel(name string) (driver.Kernel, error) {
	var status int32
	cname := dl.CString(name)
	handle := dl.Call(cl.CreateKernel, m.program, uintptr(unsafe.Pointer(&cname[0])), uintptr(unsafe.Pointer(&status)))
	if status != 0 {
		return nil, &statusError{"clCreateKernel " + name, status}
	}
	return &kernel{device: m.device, name: name, handle: handle}, nil
}

func (k *kernel) Name() string { return k.name }
