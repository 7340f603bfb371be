package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/weft-ml/weft/internal/gpu/driver"
	"github.com/weft-ml/weft/internal/gpu/drivertest"
	"github.com/weft-ml/weft/internal/gpu/source"
	"github.com/weft-ml/weft/tensor"
)

// best returns the shortest time of a call of f among tries of n calls each.
func best(tries, n int, f func() error) (time.Duration, error) {
	shortest := time.Duration(1<<63 - 1)
	for range tries {
		start := time.Now()
		for range n {
			if err := f(); err != nil {
				return 0, err
			}
		}
		shortest = min(shortest, time.Since(start)/time.Duration(n))
	}
	return shortest, nil
}

// figureTries is the number of runs. The shortest counts.
const figureTries = 5

// times measures f, and adds a figure in µs.
func (e *examination) times(name string, n int, f func() error) error {
	d, err := best(figureTries, n, f)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	e.figure(e.name, name, d.Seconds()*1e6, "µs")
	return nil
}

// workplace is a stream with memory.
type workplace struct {
	driver.Stream
	mem driver.Mem
}

func (e *examination) workplace(size int) (*workplace, error) {
	s, err := e.device.NewStream()
	if err != nil {
		return nil, err
	}
	mem, err := e.device.Alloc(size)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return &workplace{s, mem}, nil
}

func (e *examination) release(w *workplace) error {
	return errors.Join(w.Close(), e.device.Free(w.mem))
}

var one = [3]int{1, 1, 1}

func (e *examination) launches() error {
	start := time.Now()
	m, err := drivertest.Load(e.device)
	if err != nil {
		return err
	}
	e.figure(e.name, "compile 5 kernels", time.Since(start).Seconds()*1e3, "ms")
	nothing, err1 := m.Kernel("nothing")
	add, err2 := m.Kernel("add")
	w, err3 := e.workplace(1 << 20)
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	x, y, z := w.mem.Slice(0, 4096), w.mem.Slice(4096, 4096), w.mem.Slice(8192, 4096)
	start1 := func() error { return w.Launch(nothing, one, one, w.mem) }
	const n = 1000
	err = errors.Join(
		start1(), w.Sync(),
		e.times("launch, 2 arguments", n, start1), w.Sync(),
		e.times("launch, 7 arguments", n, func() error {
			return w.Launch(add, [3]int{8, 1, 1}, [3]int{128, 1, 1}, z, x, y, int64(1024))
		}), w.Sync(),
		e.times("launch and wait", 200, func() error { return errors.Join(start1(), w.Sync()) }),
		e.times("event: record, ask, close", n, func() error {
			ev, err := w.Record(false)
			if err != nil {
				return err
			}
			_, err = ev.Done()
			ev.Close()
			return err
		}), w.Sync(),
		e.times("4 bytes to the device and back", 200, func() error {
			var b [4]byte
			return errors.Join(w.ToDevice(x.Slice(0, 4), b[:]), w.ToHost(b[:], x.Slice(0, 4)), w.Sync())
		}),
	)
	start = time.Now()
	for range n {
		err = errors.Join(err, start1())
	}
	err = errors.Join(err, w.Sync())
	e.figure(e.name, "launches one after the other", time.Since(start).Seconds()*1e6/n, "µs")
	return errors.Join(err, e.release(w))
}

func (e *examination) copies() error {
	const size = 64 << 20
	w, err := e.workplace(2 * size)
	if err != nil {
		return err
	}
	pinned, err := e.device.Pinned(size)
	if err != nil {
		return err
	}
	x, y := w.mem.Slice(0, size), w.mem.Slice(size, size)
	rate := func(name string, f func() error) error {
		d, err := best(5, 2, func() error { return errors.Join(f(), w.Sync()) })
		if err == nil {
			e.figure(e.name, name, size/d.Seconds()/1e9, "GB/s")
		}
		return err
	}
	heap := make([]byte, size)
	err = errors.Join(
		rate("copy to the device, Go's heap", func() error { return w.ToDevice(x, heap) }),
		rate("copy to the device, page-locked", func() error { return w.ToDevice(x, pinned) }),
		rate("copy within the device", func() error { return w.Copy(y, x) }),
		rate("fill", func() error { return w.Fill(y, 0) }),
		rate("copy to the host, Go's heap", func() error { return w.ToHost(heap, x) }),
		rate("copy to the host, page-locked", func() error { return w.ToHost(pinned, x) }),
	)
	return errors.Join(err, e.device.Unpin(pinned), e.release(w))
}

func (e *examination) products() error {
	w, err := e.workplace(3 * 4 * 4096 * 4096)
	if err != nil {
		return err
	}
	piece := w.mem.Size / 3
	if err := e.ownProducts(w, piece); err != nil {
		return err
	}
	lib, err := e.device.BLAS()
	if err != nil {
		return e.release(w) // there is an entry for the missing library
	}
	for _, t := range []struct {
		dtype tensor.DType
		tf32  bool
		name  string
	}{{tensor.Float32, false, "float32"}, {tensor.Float32, true, "TF32"}, {tensor.Float16, false, "float16"}, {tensor.BFloat16, false, "bfloat16"}} {
		for _, n := range e.sizes() {
			p := driver.MatMul{Type: t.dtype, M: n, N: n, K: n, Batch: 1, TF32: t.tf32}
			f := func() error {
				return lib.MatMul(w.Stream, w.mem.Slice(0, piece), w.mem.Slice(piece, piece), w.mem.Slice(2*piece, piece), p)
			}
			if err := f(); errors.Is(err, driver.ErrUnsupported) {
				continue
			}
			err := e.flops(fmt.Sprintf("%s, product of %d, %s", lib.Name(), n, t.name), w, 2*float64(n)*float64(n)*float64(n), f)
			if err != nil {
				return err
			}
		}
	}
	return e.release(w)
}

// maxSingle is the longest time of work that is repeated to measure it.
const maxSingle = 300 * time.Millisecond

// sizes returns the sizes of products for the device. Those for GPUs take minutes on CPUs.
func (e *examination) sizes() []int {
	switch info := e.device.Info(); {
	case info.Language == driver.Go:
		return []int{64}
	case info.Unified:
		return []int{512}
	}
	return []int{512, 1024, 4096}
}

// flops measures work that f queues, by events on the device.
func (e *examination) flops(name string, w *workplace, operations float64, f func() error) error {
	start := time.Now()
	if err := errors.Join(f(), w.Sync()); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	n := 10
	if time.Since(start) > maxSingle {
		n = 1
	}
	first, err := w.Record(true)
	if err != nil {
		return err
	}
	for range n {
		if err := f(); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	last, err := w.Record(true)
	if err != nil {
		return err
	}
	if err := last.Sync(); err != nil {
		return err
	}
	took, err := last.Since(first)
	if err != nil {
		return err
	}
	first.Close()
	last.Close()
	e.figure(e.name, name, operations*float64(n)/max(took.Seconds(), 1e-9)/1e9, "GFLOP/s")
	return nil
}

func (e *examination) convolutions() error {
	lib, err := e.device.DNN()
	if err != nil {
		return nil // there is an entry for it
	}
	w, err := e.workplace(512 << 20)
	if err != nil {
		return err
	}
	scratch := w.mem.Slice(256<<20, 256<<20)
	for _, c := range []struct {
		name                       string
		batch, size, in, out, kern int
	}{{"CIFAR-10 conv2", 128, 12, 64, 64, 5}, {"3x3, 64 channels, 56x56", 32, 56, 64, 64, 3}} {
		for _, t := range []struct {
			dtype tensor.DType
			tf32  bool
			name  string
		}{{tensor.Float32, false, "float32"}, {tensor.Float32, true, "TF32"}, {tensor.Float16, false, "float16"}} {
			p := driver.Conv{
				Type: t.dtype, Batch: c.batch, InH: c.size, InW: c.size, InC: c.in, OutH: c.size, OutW: c.size, OutC: c.out,
				KernelH: c.kern, KernelW: c.kern, StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 1, Groups: 1, TF32: t.tf32,
				PadTop: c.kern / 2, PadLeft: c.kern / 2, PadBottom: c.kern / 2, PadRight: c.kern / 2,
			}
			x, y, f := w.mem.Slice(0, 64<<20), w.mem.Slice(64<<20, 64<<20), w.mem.Slice(128<<20, 64<<20)
			operations := 2 * float64(c.batch*c.size*c.size*c.in*c.out*c.kern*c.kern)
			for kind, what := range []string{"forward", "gradient of x", "gradient of w"} {
				err := e.flops(fmt.Sprintf("%s, %s, %s, %s", lib.Name(), c.name, t.name, what), w, operations, func() error {
					used := 0
					return lib.Conv(w.Stream, driver.ConvKind(kind), x, f, y, p, func(size int) (driver.Mem, bool) {
						size = (size + 255) / 256 * 256
						if used+size > scratch.Size {
							return driver.Mem{}, false
						}
						used += size
						return scratch.Slice(used-size, size), true
					})
				})
				if err != nil && !errors.Is(err, driver.ErrUnsupported) {
					return err
				}
			}
		}
	}
	return e.release(w)
}

// ownProducts measures the kernels that are used where there is no library.
func (e *examination) ownProducts(w *workplace, piece int) error {
	for _, t := range []string{"f32", "f16"} {
		name := "matmul128_" + t
		p := source.Find(name)
		if p == nil {
			return fmt.Errorf("there is no kernel %s", name)
		}
		m, err := e.device.Load(e.text(p))
		if err != nil {
			return err
		}
		k, err := m.Kernel(name)
		if err != nil {
			return err
		}
		for _, n := range e.sizes() {
			c, a, b := w.mem.Slice(0, piece), w.mem.Slice(piece, piece), w.mem.Slice(2*piece, piece)
			size, grid := int32(n), [3]int{(n + 127) / 128, (n + 127) / 128, 1}
			err := e.flops(fmt.Sprintf("own kernel, product of %d, %s", n, t), w, 2*float64(n)*float64(n)*float64(n), func() error {
				return w.Launch(k, grid, [3]int{16, 16, 1}, c, a, b, size, size, size, int64(n), int64(1), int64(n), int64(1), int64(0), int64(0), int32(1))
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}
