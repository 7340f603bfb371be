package device_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/internal/gpu/driver"
	"github.com/weft-ml/weft/internal/gpu/hostgpu"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	names := []string{"device_test_add", "device_test_fails"}
	device.Register(device.Program{Name: "device_test", Kernels: names, Text: func(driver.Language) (string, []string) { return "", nil }})
	hostgpu.RegisterKernel(names[0], func(a *hostgpu.Args) {
		z, x, y := hostgpu.Slice[float32](a, 0), hostgpu.Slice[float32](a, 1), hostgpu.Slice[float32](a, 2)
		for i := range a.Int(3) {
			z[i] = x[i] + y[i]
		}
	})
	hostgpu.RegisterKernel(names[1], func(a *hostgpu.Args) { panic(fmt.Errorf("the kernel is broken")) })
}

// open returns n devices of 64 MiB whose work is late.
func open(t *testing.T, n int, delay time.Duration, peers bool) []*device.Device {
	t.Helper()
	var out []*device.Device
	for i, dev := range hostgpu.Open(hostgpu.Options{Devices: n, Memory: 64 << 20, Delay: delay, Peers: peers}) {
		d, err := device.Open(dev, device.Options{Name: fmt.Sprintf("/job:test/replica:0/task:0/device:GPU:%d", i), Number: i, Growth: true})
		if err != nil {
			t.Skip(err)
		}
		t.Cleanup(func() {
			runtime.GC()
			if n := d.Stats().InUse; n != 0 {
				t.Errorf("%s: %d bytes are still in use", d.Name(), n)
			}
			d.Close()
		})
		out = append(out, d)
	}
	return out
}

func floats(n int, f func(int) float32) tensor.Tensor {
	v := make([]float32, n)
	for i := range v {
		v[i] = f(i)
	}
	return tensor.Vector(v...)
}

func upload(t testing.TB, d *device.Device, host tensor.Tensor) tensor.Tensor {
	t.Helper()
	out, err := d.ToDevice(&host)
	if err != nil {
		t.Fatal(err)
	}
	if !out.OnDevice() || device.Of(&out) != d {
		t.Fatal("the copy is not on the device")
	}
	return out
}

// download copies a tensor to the host and releases it.
func download(t testing.TB, d *device.Device, on tensor.Tensor) []float32 {
	t.Helper()
	host, err := d.Host(&on)
	on.Release()
	if err != nil {
		t.Fatal(err)
	}
	return tensor.Values[float32](&host)
}

func add(t testing.TB, d *device.Device, x, y *tensor.Tensor) tensor.Tensor {
	t.Helper()
	z, err := d.Alloc(tensor.Float32, x.Shape())
	if err == nil {
		err = d.Launch("device_test_add", [3]int{1, 1, 1}, [3]int{1, 1, 1}, &z, x, y, int64(x.NumElements()))
	}
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// TestOrder adds tensors of several sizes whose copies are late in a random order, and releases
// every tensor as soon as its last use is queued.
func TestOrder(t *testing.T) {
	d := open(t, 1, 200*time.Microsecond, false)[0]
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for round := range 10 {
				n := []int{1, 100, 20_000, 300_000}[(g+round)%4]
				x := upload(t, d, floats(n, func(i int) float32 { return float32(i + g) }))
				y := upload(t, d, floats(n, func(i int) float32 { return float32(i * round) }))
				z := add(t, d, &x, &y)
				x.Release()
				w := add(t, d, &z, &y)
				y.Release()
				z.Release()
				for i, v := range download(t, d, w) {
					if want := float32(i+g) + 2*float32(i*round); v != want {
						t.Errorf("element %d of %d is %g, want %g", i, n, v, want)
						break
					}
				}
			}
		})
	}
	wg.Wait()
	s := d.Stats()
	if s.ToDevice != 80 || s.ToHost != 40 || s.Launches != 80 {
		t.Errorf("statistics: %+v", s)
	}
}

func TestCopiesOnDevice(t *testing.T) {
	for _, peers := range []bool{true, false} {
		all := open(t, 2, 100*time.Microsecond, peers)
		x := upload(t, all[0], floats(50_000, func(i int) float32 { return float32(i) }))
		y, err := x.Clone()
		if err != nil {
			t.Fatal(err)
		}
		sum := add(t, all[0], &x, &y)
		x.Release()
		y.Release()
		came := make(chan tensor.Tensor)
		all[1].Take(&sum, func(v tensor.Tensor, err error) {
			if err != nil {
				t.Error(err)
			}
			came <- v
		})
		sum.Release()
		moved := <-came
		if device.Of(&moved) != all[1] {
			t.Fatal("the copy is not on the other device")
		}
		if got := download(t, all[1], moved); got[49_999] != 99_998 {
			t.Errorf("peers %t: the last element is %g", peers, got[49_999])
		}
	}
}

func TestEmptyTensor(t *testing.T) {
	d := open(t, 1, 0, false)[0]
	x := upload(t, d, tensor.Vector[float32]())
	if !x.OnDevice() || len(x.Bytes()) != 0 {
		t.Errorf("on the device %t, %d bytes", x.OnDevice(), len(x.Bytes()))
	}
	y, err := x.Clone()
	if err != nil {
		t.Fatal(err)
	}
	x.Release()
	if got := download(t, d, y); len(got) != 0 {
		t.Errorf("%d elements", len(got))
	}
}

func TestViewsAndCounts(t *testing.T) {
	d := open(t, 1, 0, false)[0]
	host := floats(12, func(i int) float32 { return float32(i) })
	x := upload(t, d, host)
	m, err := x.WithShape(tensor.Shape{3, 4})
	if err != nil {
		t.Fatal(err)
	}
	row := m.Rows(1, 2)
	held := row.Retain()
	x.Release()
	if got := download(t, d, held); len(got) != 4 || got[0] != 4 {
		t.Errorf("row 1 is %v", got)
	}
	if n := d.Stats().InUse; n != 0 {
		t.Errorf("%d bytes in use after the last release", n)
	}
}

func TestOutOfMemory(t *testing.T) {
	d := open(t, 1, 0, false)[0]
	_, err := d.Alloc(tensor.Float32, tensor.Shape{1 << 30, 2})
	want := "OOM when allocating tensor with shape[1073741824,2] and type float on /job:test/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc"
	if status.CodeOf(err) != status.ResourceExhausted || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v", err)
	}
	var held []tensor.Tensor
	for {
		x, err := d.Alloc(tensor.Float32, tensor.Shape{1 << 20})
		if err != nil {
			if status.CodeOf(err) != status.ResourceExhausted {
				t.Error(err)
			}
			break
		}
		held = append(held, x)
	}
	if len(held) < 8 || len(held) > 16 {
		t.Errorf("%d tensors of 4 MiB fit in 64 MiB", len(held))
	}
	for i := range held {
		held[i].Release()
	}
	x := upload(t, d, floats(1<<20, func(int) float32 { return 1 }))
	x.Release()
}

// TestLeakedReference drops a tensor without releasing it: the garbage collector returns its
// memory.
func TestLeakedReference(t *testing.T) {
	d := open(t, 1, 0, false)[0]
	func() {
		x := upload(t, d, floats(1000, func(int) float32 { return 1 }))
		runtime.KeepAlive(x)
	}()
	deadline := time.Now().Add(5 * time.Second)
	for d.Stats().InUse != 0 && time.Now().Before(deadline) {
		runtime.GC()
		time.Sleep(time.Millisecond) //nolint:forbidigo // finalizers have no event
	}
}

// TestBrokenKernel checks that an error of a kernel ends later work with that error. Launch itself
// returns the error if the kernel ran before Launch queued the event that takes its time.
func TestBrokenKernel(t *testing.T) {
	d := open(t, 1, 0, false)[0]
	broken := func(err error) bool {
		return status.CodeOf(err) == status.Internal && strings.Contains(err.Error(), "the kernel is broken")
	}
	if err := d.Launch("device_test_fails", [3]int{1, 1, 1}, [3]int{1, 1, 1}); err != nil && !broken(err) {
		t.Errorf("the launch returned %v", err)
	}
	if err := d.Sync(); !broken(err) {
		t.Errorf("got %v", err)
	}
	if err := d.Err(); err == nil {
		t.Error("the device has no error")
	}
	if err := d.Launch("device_test_fails", [3]int{1, 1, 1}, [3]int{1, 1, 1}); err == nil {
		t.Error("a broken device takes work")
	}
}

func TestUnknownKernel(t *testing.T) {
	d := open(t, 1, 0, false)[0]
	err := d.Launch("device_test_missing", [3]int{1, 1, 1}, [3]int{1, 1, 1})
	if status.CodeOf(err) != status.Internal {
		t.Errorf("got %v", err)
	}
	if err := d.Launch("device_test_add", [3]int{1, 1, 1}, [3]int{1, 1, 1}, 5); status.CodeOf(err) != status.Internal {
		t.Errorf("an argument of type int: %v", err)
	}
}

func TestClosedDevice(t *testing.T) {
	all := hostgpu.Open(hostgpu.Options{Devices: 1, Memory: 1 << 20})
	d, err := device.Open(all[0], device.Options{Name: "/device:GPU:0"})
	if err != nil {
		t.Skip(err)
	}
	x := upload(t, d, floats(10, func(int) float32 { return 1 }))
	d.Close()
	d.Close()
	if _, err := d.Host(&x); status.CodeOf(err) != status.Cancelled {
		t.Errorf("got %v", err)
	}
	x.Release()
	if free, err := all[0].FreeMemory(); err != nil || free != 1<<20 {
		t.Errorf("%d bytes are free, error %v", free, err)
	}
}

func BenchmarkRoundTrip(b *testing.B) {
	dev := hostgpu.Open(hostgpu.Options{Devices: 1, Memory: 1 << 20})[0]
	d, err := device.Open(dev, device.Options{Name: "/device:GPU:0"})
	if err != nil {
		b.Skip(err)
	}
	defer d.Close()
	host := floats(1, func(int) float32 { return 1 })
	for b.Loop() {
		x := upload(b, d, host)
		z := add(b, d, &x, &x)
		x.Release()
		download(b, d, z)
	}
}

// TestScratchInDo allocates scratch memory while the stream is locked, in a pool that must give a
// region back first, and with no memory left.
func TestScratchInDo(t *testing.T) {
	dev := hostgpu.Open(hostgpu.Options{Devices: 1, Memory: 64 << 20, Delay: time.Millisecond})[0]
	d, err := device.Open(dev, device.Options{Name: "/device:GPU:0", Growth: true, Retry: time.Hour})
	if err != nil {
		t.Skip(err)
	}
	defer d.Close()
	small := upload(t, d, floats(1<<20, func(int) float32 { return 1 }))
	small.Release()
	for _, size := range []int{60 << 20, 70 << 20} {
		err := d.Do("library", func(driver.Stream) error {
			b, err := d.Scratch(size)
			if err == nil {
				b.Release()
			}
			return fmt.Errorf("%w, %w", driver.ErrUnsupported, err)
		})
		if got := errors.Is(err, driver.ErrOutOfMemory); got != (size > 64<<20) {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}
