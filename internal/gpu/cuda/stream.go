//go:build gpu

package cuda

import (
	"fmt"
	"math"
	"time"
	"unsafe"

	"github.com/weft-ml/weft/internal/gpu/dl"
	"github.com/weft-ml/weft/internal/gpu/driver"
)

// Flags.
const (
	nonBlocking = 1 // a stream does not wait for the default stream
	withoutTime = 2 // an event has no time
)

// Limits of the arguments of a launch. CUDA allows 4 KiB.
const (
	maxArgs  = 256
	maxWords = 512
)

// arguments is the room for the arguments of one launch. CUDA reads it during the call.
type arguments struct {
	words [maxWords]uint64
	at    [maxArgs]uintptr // addresses in words
}

type stream struct {
	device *device
	handle uintptr
	args   *arguments
}

func (d *device) NewStream() (driver.Stream, error) {
	d.enter()
	defer leave()
	s := &stream{device: d, args: new(arguments)}
	if err := call("cuStreamCreate", cu.StreamCreate, uintptr(unsafe.Pointer(&s.handle)), nonBlocking); err != nil {
		return nil, err
	}
	return s, nil
}

// set writes the arguments of a launch to a.
func (a *arguments) set(args []any) error {
	words, n := 0, 0
	for i, arg := range args {
		size := 1
		if s, ok := arg.(driver.Struct); ok {
			size = len(s) / 8
		}
		if words+size+1 > maxWords || n+2 > maxArgs {
			return fmt.Errorf("argument %d is more than there is room for", i)
		}
		a.at[n] = uintptr(unsafe.Pointer(&a.words[words])) // on the heap: of the stream
		switch v := arg.(type) {
		case driver.Mem:
			a.words[words], a.words[words+1] = uint64(v.Base), uint64(v.Off)
			a.at[n+1] = uintptr(unsafe.Pointer(&a.words[words+1])) // on the heap: of the stream
			n++
			size = 2
		case int32:
			a.words[words] = uint64(uint32(v))
		case uint32:
			a.words[words] = uint64(v)
		case int64:
			a.words[words] = uint64(v)
		case uint64:
			a.words[words] = v
		case float32:
			a.words[words] = uint64(math.Float32bits(v))
		case float64:
			a.words[words] = math.Float64bits(v)
		case driver.Struct:
			if len(v)%8 != 0 || len(v) == 0 {
				return fmt.Errorf("argument %d is a structure of %d bytes", i, len(v))
			}
			copy(unsafe.Slice((*byte)(unsafe.Pointer(&a.words[words])), len(v)), v)
		default:
			return fmt.Errorf("argument %d has type %T", i, arg)
		}
		words += size
		n++
	}
	return nil
}

func (s *stream) Launch(k driver.Kernel, grid, block [3]int, args ...any) error {
	own, ok := k.(*kernel)
	if !ok || own.device != s.device {
		return fmt.Errorf("CUDA: kernel %s is not of device %d", k.Name(), s.device.id)
	}
	if err := s.args.set(args); err != nil {
		return fmt.Errorf("CUDA: kernel %s: %w", own.name, err)
	}
	s.device.enter()
	defer leave()
	if code := uint32(dl.Call(cu.LaunchKernel, own.handle, uintptr(grid[0]), uintptr(grid[1]), uintptr(grid[2]), uintptr(block[0]),
		uintptr(block[1]), uintptr(block[2]), 0, s.handle, uintptr(unsafe.Pointer(&s.args.at[0])), 0)); code != 0 {
		return &statusError{fmt.Sprintf("kernel %s, grid %v, block %v", own.name, grid, block), code}
	}
	return nil
}

// address is the place of a piece in the address space of all devices.
func address(m driver.Mem) uintptr { return m.Base + uintptr(m.Off) }

func (s *stream) ToDevice(dst driver.Mem, src []byte) error {
	if dst.Size < len(src) {
		return fmt.Errorf("CUDA: copy of %d bytes to %d", len(src), dst.Size)
	}
	s.device.enter()
	defer leave()
	return call("cuMemcpyHtoDAsync", cu.MemcpyHtoDAsync_v2, address(dst), uintptr(unsafe.Pointer(unsafe.SliceData(src))), uintptr(len(src)), s.handle)
}

func (s *stream) ToHost(dst []byte, src driver.Mem) error {
	if src.Size < len(dst) {
		return fmt.Errorf("CUDA: copy of %d bytes from %d", len(dst), src.Size)
	}
	s.device.enter()
	defer leave()
	return call("cuMemcpyDtoHAsync", cu.MemcpyDtoHAsync_v2, uintptr(unsafe.Pointer(unsafe.SliceData(dst))), address(src), uintptr(len(dst)), s.handle)
}

func (s *stream) Copy(dst, src driver.Mem) error {
	if dst.Size < src.Size {
		return fmt.Errorf("CUDA: copy of %d bytes to %d", src.Size, dst.Size)
	}
	s.device.enter()
	defer leave()
	return call("cuMemcpyDtoDAsync", cu.MemcpyDtoDAsync_v2, address(dst), address(src), uintptr(src.Size), s.handle)
}

func (s *stream) CopyFrom(dst driver.Mem, from driver.Device, src driver.Mem) error {
	peer, ok := from.(*device)
	if !ok || dst.Size < src.Size {
		return fmt.Errorf("CUDA: copy of %d bytes from %s to %d", src.Size, from.Info().Name, dst.Size)
	}
	s.device.enter()
	defer leave()
	s.device.access(peer)
	return call("cuMemcpyPeerAsync", cu.MemcpyPeerAsync, address(dst), s.device.context, address(src), peer.context, uintptr(src.Size), s.handle)
}

func (s *stream) Fill(dst driver.Mem, value byte) error {
	s.device.enter()
	defer leave()
	return call("cuMemsetD8Async", cu.MemsetD8Async, address(dst), uintptr(value), uintptr(dst.Size), s.handle)
}

func (s *stream) Sync() error {
	s.device.enter()
	defer leave()
	return call("cuStreamSynchronize", cu.StreamSynchronize, s.handle)
}

func (s *stream) Close() error {
	s.device.enter()
	defer leave()
	err := call("cuStreamSynchronize", cu.StreamSynchronize, s.handle)
	if e := call("cuStreamDestroy", cu.StreamDestroy_v2, s.handle); err == nil {
		err = e
	}
	return err
}

type event struct {
	device *device
	handle uintptr
	timed  bool
}

func (s *stream) Record(timed bool) (driver.Event, error) {
	s.device.enter()
	defer leave()
	handle, err := s.device.newEvent(timed)
	if err != nil {
		return nil, err
	}
	if err := call("cuEventRecord", cu.EventRecord, handle, s.handle); err != nil {
		return nil, err
	}
	return &event{s.device, handle, timed}, nil
}

func (s *stream) Wait(e driver.Event) error {
	own, ok := e.(*event)
	if !ok {
		return fmt.Errorf("CUDA: Wait for an event of type %T", e)
	}
	s.device.enter()
	defer leave()
	return call("cuStreamWaitEvent", cu.StreamWaitEvent, s.handle, own.handle, 0)
}

func (e *event) Done() (bool, error) {
	e.device.enter()
	defer leave()
	switch code := uint32(dl.Call(cu.EventQuery, e.handle)); code {
	case 0:
		return true, nil
	case statusNotReady:
		return false, nil
	default:
		return false, &statusError{"cuEventQuery", code}
	}
}

func (e *event) Sync() error {
	e.device.enter()
	defer leave()
	return call("cuEventSynchronize", cu.EventSynchronize, e.handle)
}

func (e *event) Since(earlier driver.Event) (time.Duration, error) {
	first, ok := earlier.(*event)
	if !ok || !first.timed || !e.timed {
		return 0, fmt.Errorf("CUDA: Since of events without times")
	}
	e.device.enter()
	defer leave()
	var ms float32
	if err := call("cuEventElapsedTime", cu.EventElapsedTime, uintptr(unsafe.Pointer(&ms)), first.handle, e.handle); err != nil {
		return 0, err
	}
	return time.Duration(float64(ms) * float64(time.Millisecond)), nil
}

// Close lets the event be used again. A stream that waits for it has read its state when Wait was
// called.
func (e *event) Close() {
	if e.handle != 0 {
		e.device.dropEvent(e.handle, e.timed)
		e.handle = 0
	}
}
