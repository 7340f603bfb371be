package hostgpu

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"

	"github.com/weft-ml/weft/internal/gpu/driver"
	"github.com/weft-ml/weft/internal/sys/mono"
)

// stream runs its work in order. The goroutine run exists while there is work.
type stream struct {
	device *device

	mu      sync.Mutex
	work    []func() error // guarded by mu
	running bool           // whether run exists; guarded by mu
	closed  bool           // guarded by mu
}

func (d *device) NewStream() (driver.Stream, error) { return &stream{device: d}, d.failed() }

// queue adds work. It fails if work on the device has failed.
func (s *stream) queue(f func() error) error {
	if err := s.device.failed(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errors.New("hostgpu: work on a closed stream")
	}
	s.work = append(s.work, f)
	if !s.running {
		s.running = true
		go s.run()
	}
	return nil
}

// run does the work of the stream until there is none.
func (s *stream) run() {
	for {
		s.mu.Lock()
		if len(s.work) == 0 {
			s.work, s.running = nil, false
			s.mu.Unlock()
			return
		}
		f := s.work[0]
		s.work = s.work[1:]
		s.mu.Unlock()
		if late := s.device.options.Delay; late > 0 {
			pause(rand.N(late))
		}
		if err := f(); err != nil {
			s.device.fail(err)
		}
	}
}

// shortest is the shortest delay for which a timer is worth its cost. Less is a context switch.
const shortest = 20 * time.Microsecond

func pause(d time.Duration) {
	if d < shortest {
		runtime.Gosched()
		return
	}
	<-time.After(d)
}

func (s *stream) Launch(k driver.Kernel, grid, block [3]int, args ...any) error {
	own, ok := k.(*kernel)
	if !ok || own.device != s.device {
		return fmt.Errorf("hostgpu: kernel %s is not of device %d", k.Name(), s.device.number)
	}
	if err := checkSizes(grid, block); err != nil {
		return fmt.Errorf("hostgpu: kernel %s: %w", own.name, err)
	}
	list := make([]any, len(args))
	for i, a := range args {
		switch a := a.(type) {
		case driver.Mem, int32, uint32, int64, uint64, float32, float64:
			list[i] = a
		case driver.Struct:
			if len(a)%8 != 0 {
				return fmt.Errorf("hostgpu: kernel %s: argument %d is a structure of %d bytes", own.name, i, len(a))
			}
			list[i] = append(driver.Struct(nil), a...)
		default:
			return fmt.Errorf("hostgpu: kernel %s: argument %d has type %T", own.name, i, a)
		}
	}
	a := &Args{Grid: grid, Block: block, device: s.device, name: own.name, args: list}
	return s.queue(func() error { return own.run(a) })
}

// checkSizes applies the limits of common devices.
func checkSizes(grid, block [3]int) error {
	items := 1
	for i := range 3 {
		if grid[i] < 1 || block[i] < 1 || i > 0 && grid[i] > 65535 || grid[i] > 1<<31-1 {
			return fmt.Errorf("grid %v, block %v", grid, block)
		}
		items *= block[i]
	}
	if items > 1024 || block[2] > 64 {
		return fmt.Errorf("block %v has %d work items", block, items)
	}
	return nil
}

// run computes all work items. A panic is a fault of the device.
func (k *kernel) run(a *Args) (err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case runtime.Error:
			err = fmt.Errorf("hostgpu: kernel %s: %w", k.name, p)
		case error:
			err = p
		default:
			err = fmt.Errorf("hostgpu: kernel %s: %v", k.name, p)
		}
	}()
	k.compute(a)
	return nil
}

func (s *stream) ToDevice(dst driver.Mem, src []byte) error {
	if dst.Size < len(src) {
		return fmt.Errorf("hostgpu: copy of %d bytes to %+v", len(src), dst)
	}
	return s.queue(func() error {
		b, err := s.device.bytes(dst)
		copy(b, src)
		return err
	})
}

func (s *stream) ToHost(dst []byte, src driver.Mem) error {
	if src.Size < len(dst) {
		return fmt.Errorf("hostgpu: copy of %d bytes from %+v", len(dst), src)
	}
	return s.queue(func() error {
		b, err := s.device.bytes(src)
		copy(dst, b)
		return err
	})
}

func (s *stream) Copy(dst, src driver.Mem) error { return s.copyFrom(dst, s.device, src) }

func (s *stream) CopyFrom(dst driver.Mem, from driver.Device, src driver.Mem) error {
	if !s.device.CanCopy(from) {
		return fmt.Errorf("hostgpu: device %d does not copy from %s", s.device.number, from.Info().Name)
	}
	return s.copyFrom(dst, from.(*device), src)
}

func (s *stream) copyFrom(dst driver.Mem, from *device, src driver.Mem) error {
	if dst.Size < src.Size {
		return fmt.Errorf("hostgpu: copy of %d bytes to %+v", src.Size, dst)
	}
	if from == s.device && dst.Base == src.Base && dst.Off < src.Off+src.Size && src.Off < dst.Off+src.Size && src.Size > 0 {
		return fmt.Errorf("hostgpu: copy of %+v to %+v, which overlap", src, dst)
	}
	return s.queue(func() error {
		to, err := s.device.bytes(dst)
		if err != nil {
			return err
		}
		b, err := from.bytes(src)
		copy(to, b)
		return err
	})
}

func (s *stream) Fill(dst driver.Mem, value byte) error {
	return s.queue(func() error {
		b, err := s.device.bytes(dst)
		for i := range b {
			b[i] = value
		}
		return err
	})
}

func (s *stream) Record(timed bool) (driver.Event, error) {
	e := &event{device: s.device, reached: make(chan struct{}), timed: timed}
	return e, s.queue(func() error {
		e.at = mono.Now()
		close(e.reached)
		return nil
	})
}

func (s *stream) Wait(e driver.Event) error {
	own, ok := e.(*event)
	if !ok || own.device != s.device {
		return fmt.Errorf("hostgpu: a stream of device %d waits for an event of another device", s.device.number)
	}
	return s.queue(func() error {
		<-own.reached
		return nil
	})
}

func (s *stream) Sync() error {
	e, err := s.Record(false)
	if err != nil {
		return err
	}
	return e.Sync()
}

func (s *stream) Close() error {
	err := s.Sync()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return err
}

type event struct {
	device  *device
	timed   bool
	reached chan struct{} // closed by the stream
	at      time.Duration // written before reached is closed
}

func (e *event) Done() (bool, error) {
	select {
	case <-e.reached:
		return true, e.device.failed()
	default:
		return false, e.device.failed()
	}
}

func (e *event) Sync() error {
	<-e.reached
	return e.device.failed()
}

func (e *event) Since(earlier driver.Event) (time.Duration, error) {
	first, ok := earlier.(*event)
	if !ok || !first.timed || !e.timed {
		return 0, errors.New("hostgpu: Since of events without times")
	}
	for _, x := range []*event{first, e} {
		if done, err := x.Done(); !done || err != nil {
			return 0, errors.Join(errors.New("hostgpu: Since of an event that is not done"), err)
		}
	}
	return e.at - first.at, nil
}

func (*event) Close() {}
