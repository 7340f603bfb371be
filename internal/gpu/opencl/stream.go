//go:build gpu

package opencl

import (
	"errors"
	"fmt"
	"math"
	"time"
	"unsafe"

	"github.com/weft-ml/weft/internal/gpu/dl"
	"github.com/weft-ml/weft/internal/gpu/driver"
)

// stream is a command queue in order.
type stream struct {
	device  *device
	queue   uintptr
	pattern [1]byte // where clEnqueueFillBuffer reads
}

func (d *device) NewStream() (driver.Stream, error) {
	q, err := d.queue()
	if err != nil {
		return nil, err
	}
	return &stream{device: d, queue: q}, nil
}

func (s *stream) Launch(k driver.Kernel, grid, block [3]int, args ...any) error {
	own, ok := k.(*kernel)
	if !ok || own.device != s.device {
		return fmt.Errorf("OpenCL: kernel %s is of another device", k.Name())
	}
	own.mu.Lock()
	defer own.mu.Unlock()
	at := 0
	for i, a := range args {
		var err error
		if at, err = own.set(at, a); err != nil {
			return fmt.Errorf("kernel %s: argument %d: %w", own.name, i, err)
		}
	}
	dims := 1
	for d := range 3 {
		if block[d] > 1 || grid[d] > 1 {
			dims = d + 1
		}
		own.sizes[d], own.sizes[3+d] = uint64(grid[d]*block[d]), uint64(block[d])
	}
	r := dl.Call(cl.EnqueueNDRangeKernel, s.queue, own.handle, uintptr(dims), 0, uintptr(unsafe.Pointer(&own.sizes[0])),
		uintptr(unsafe.Pointer(&own.sizes[3])), 0, 0, 0)
	if r != 0 {
		return &statusError{fmt.Sprintf("kernel %s, grid %v, block %v", own.name, grid, block), int32(r)}
	}
	return nil
}

// set sets the argument of the kernel at a position, and returns the next position.
func (k *kernel) set(at int, arg any) (int, error) {
	number := func(v uint64, size uintptr) error {
		k.value[0] = v
		r := dl.Call(cl.SetKernelArg, k.handle, uintptr(at), size, uintptr(unsafe.Pointer(&k.value[0])))
		at++
		return check("clSetKernelArg", r)
	}
	switch v := arg.(type) {
	case driver.Mem:
		if err := number(uint64(v.Base), 8); err != nil {
			return at, err
		}
		return at, number(uint64(v.Off), 8)
	case int32:
		return at, number(uint64(uint32(v)), 4)
	case uint32:
		return at, number(uint64(v), 4)
	case int64:
		return at, number(uint64(v), 8)
	case uint64:
		return at, number(v, 8)
	case float32:
		return at, number(uint64(math.Float32bits(v)), 4)
	case float64:
		return at, number(math.Float64bits(v), 8)
	case driver.Struct:
		if len(v)%8 != 0 || len(v) == 0 {
			return at, fmt.Errorf("OpenCL: a structure of %d bytes", len(v))
		}
		return at + 1, call("clSetKernelArg", cl.SetKernelArg, k.handle, uintptr(at), uintptr(len(v)), uintptr(unsafe.Pointer(&v[0])))
	}
	return at, fmt.Errorf("OpenCL: type %T", arg)
}

func (s *stream) ToDevice(dst driver.Mem, src []byte) error {
	if len(src) == 0 {
		return nil
	}
	if dst.Size < len(src) {
		return fmt.Errorf("OpenCL: copy of %d bytes to %d", len(src), dst.Size)
	}
	return call("clEnqueueWriteBuffer", cl.EnqueueWriteBuffer, s.queue, dst.Base, 0, uintptr(dst.Off), uintptr(len(src)),
		uintptr(unsafe.Pointer(unsafe.SliceData(src))), 0, 0, 0)
}

func (s *stream) ToHost(dst []byte, src driver.Mem) error {
	if len(dst) == 0 {
		return nil
	}
	if src.Size < len(dst) {
		return fmt.Errorf("OpenCL: copy of %d bytes from %d", len(dst), src.Size)
	}
	return call("clEnqueueReadBuffer", cl.EnqueueReadBuffer, s.queue, src.Base, 0, uintptr(src.Off), uintptr(len(dst)),
		uintptr(unsafe.Pointer(unsafe.SliceData(dst))), 0, 0, 0)
}

func (s *stream) Copy(dst, src driver.Mem) error {
	if src.Size == 0 {
		return nil
	}
	if dst.Size < src.Size {
		return fmt.Errorf("OpenCL: copy of %d bytes to %d", src.Size, dst.Size)
	}
	return call("clEnqueueCopyBuffer", cl.EnqueueCopyBuffer, s.queue, src.Base, dst.Base, uintptr(src.Off), uintptr(dst.Off), uintptr(src.Size), 0, 0, 0)
}

func (s *stream) CopyFrom(_ driver.Mem, from driver.Device, _ driver.Mem) error {
	return fmt.Errorf("OpenCL: devices do not copy from %s", from.Info().Name)
}

func (s *stream) Fill(dst driver.Mem, value byte) error {
	if dst.Size == 0 {
		return nil
	}
	s.pattern[0] = value
	return call("clEnqueueFillBuffer", cl.EnqueueFillBuffer, s.queue, dst.Base, uintptr(unsafe.Pointer(&s.pattern[0])), 1,
		uintptr(dst.Off), uintptr(dst.Size), 0, 0, 0)
}

func (s *stream) Sync() error { return call("clFinish", cl.Finish, s.queue) }

func (s *stream) Close() error {
	return errors.Join(s.Sync(), call("clReleaseCommandQueue", cl.ReleaseCommandQueue, s.queue))
}

// Parameters of an event.
const (
	infoEventStatus = 0x11d3
	timeOfEnd       = 0x1283
)

type event struct {
	device *device
	handle uintptr
	timed  bool
	status int32  // where the status is written
	time   uint64 // where the time is written, ns
}

// Record hands all work to the device, so that others can wait for it.
func (s *stream) Record(timed bool) (driver.Event, error) {
	e := &event{device: s.device, timed: timed}
	if err := call("clEnqueueMarkerWithWaitList", cl.EnqueueMarkerWithWaitList, s.queue, 0, 0, uintptr(unsafe.Pointer(&e.handle))); err != nil {
		return nil, err
	}
	return e, call("clFlush", cl.Flush, s.queue)
}

func (s *stream) Wait(e driver.Event) error {
	own, ok := e.(*event)
	if !ok || own.device != s.device {
		return errors.New("OpenCL: a stream waits for an event of another device")
	}
	return call("clEnqueueBarrierWithWaitList", cl.EnqueueBarrierWithWaitList, s.queue, 1, uintptr(unsafe.Pointer(&own.handle)), 0)
}

func (e *event) Done() (bool, error) {
	e.status = 1
	if err := call("clGetEventInfo", cl.GetEventInfo, e.handle, infoEventStatus, 4, uintptr(unsafe.Pointer(&e.status)), 0); err != nil {
		return false, err
	}
	if e.status < 0 {
		return false, &statusError{"work of a stream", e.status}
	}
	return e.status == 0, nil
}

func (e *event) Sync() error {
	return call("clWaitForEvents", cl.WaitForEvents, 1, uintptr(unsafe.Pointer(&e.handle)))
}

func (e *event) Since(earlier driver.Event) (time.Duration, error) {
	first, ok := earlier.(*event)
	if !ok || !first.timed || !e.timed {
		return 0, errors.New("OpenCL: Since of events without times")
	}
	for _, x := range []*event{first, e} {
		if err := call("clGetEventProfilingInfo", cl.GetEventProfilingInfo, x.handle, timeOfEnd, 8, uintptr(unsafe.Pointer(&x.time)), 0); err != nil {
			return 0, err
		}
	}
	return time.Duration(e.time) - time.Duration(first.time), nil
}

func (e *event) Close() {
	if e.handle != 0 {
		dl.Call(cl.ReleaseEvent, e.handle)
		e.handle = 0
	}
}
