package drivertest

import (
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/weft-ml/weft/internal/gpu/driver"
)

// Stress lets goroutines share a device, each with a stream, while the garbage collector runs.
// Their stacks move, and they change threads. It finds pointers that C holds for too long: in one
// of 25000 rounds when there was one.
func Stress(d driver.Device, workers, rounds int) error {
	m, err := Load(d)
	if err != nil {
		return err
	}
	add, err := m.Kernel("add")
	if err != nil {
		return err
	}
	stop := make(chan struct{})
	var collector, wg sync.WaitGroup
	collector.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				runtime.GC()
			}
		}
	})
	errs := make([]error, workers)
	for w := range workers {
		wg.Go(func() {
			b, err := newBench(d)
			if err != nil {
				errs[w] = err
				return
			}
			for r := 0; r < rounds && errs[w] == nil; r++ {
				errs[w] = deeper(r%7, func() error { return b.round(add, uint64(w), uint64(r)) })
			}
			errs[w] = errors.Join(errs[w], b.close())
		})
	}
	wg.Wait()
	close(stop)
	collector.Wait()
	return errors.Join(errs...)
}

// deeper calls f on a stack that has grown.
func deeper(n int, f func() error) error {
	var room [256]byte
	if n > 0 {
		err := deeper(n-1, f)
		room[n] = 1 // keeps the frame large
		runtime.KeepAlive(&room)
		return err
	}
	return f()
}

func (b *bench) round(add driver.Kernel, w, r uint64) error {
	const n = 1000
	x, y, z := b.mem.Slice(0, 4*n), b.mem.Slice(8192, 4*n), b.mem.Slice(16384, 4*n)
	va, vb := floats(n, w), floats(n, r)
	ba, bb, got := bytesOf(va), bytesOf(vb), make([]byte, 4*n)
	if err := b.stream.ToDevice(x, ba); err != nil {
		return err
	}
	runtime.Gosched()
	if err := errors.Join(b.stream.ToDevice(y, bb), b.stream.Launch(add, groups(n), group, z, x, y, int64(n)), b.stream.ToHost(got, z)); err != nil {
		return err
	}
	e, err := b.stream.Record(false)
	if err != nil {
		return err
	}
	for done := false; !done; {
		if done, err = e.Done(); err != nil {
			return err
		}
		runtime.Gosched()
	}
	e.Close()
	runtime.KeepAlive(ba)
	runtime.KeepAlive(bb)
	for i, v := range floatsOf(got) {
		if want := va[i] + vb[i]; v != want {
			return fmt.Errorf("worker %d, round %d: element %d is %g, want %g", w, r, i, v, want)
		}
	}
	return nil
}
