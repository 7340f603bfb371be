package hostgpu

import (
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weft-ml/weft/internal/gpu/driver"
)

func init() {
	RegisterKernel("test_double", func(a *Args) {
		y, x := Slice[float32](a, 0), Slice[float32](a, 1)
		for i := range a.Int(2) {
			y[i] = 2 * x[i]
		}
	})
	RegisterKernel("test_scalars", func(a *Args) {
		y := Slice[float64](a, 0)
		y[0] = float64(a.Int(1)) + float64(a.Int(2)) + float64(a.Int(3)) + float64(a.Int(4)) + float64(a.Float32(5)) + a.Float64(6)
		s := Struct[struct{ A, B int64 }](a, 7)
		y[1] = float64(s.A - s.B)
		y[2] = float64(a.Grid[1]*a.Block[0] + a.Len())
	})
	RegisterKernel("test_panic", func(*Args) { panic("on purpose") })
}

var one = [3]int{1, 1, 1}

func open(t *testing.T, o Options) (driver.Device, driver.Stream) {
	t.Helper()
	o.Devices = 1
	d := Open(o)[0]
	s, err := d.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	return d, s
}

func kernelOf(t *testing.T, d driver.Device, name string) driver.Kernel {
	t.Helper()
	m, err := d.Load("")
	if err != nil {
		t.Fatal(err)
	}
	k, err := m.Kernel(name)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func alloc(t *testing.T, d driver.Device, size int) driver.Mem {
	t.Helper()
	m, err := d.Alloc(size)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func ok(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func TestWorkRunsInOrder(t *testing.T) {
	d, s := open(t, Options{Delay: 50 * time.Microsecond})
	double := kernelOf(t, d, "test_double")
	mem := alloc(t, d, 512)
	x, y := mem.Slice(0, 4), mem.Slice(256, 4)
	one32 := []byte{0, 0, 0x80, 0x3f}
	ok(t, s.ToDevice(x, one32))
	for range 10 {
		ok(t, s.Launch(double, one, one, y, x, int64(1)), s.Copy(x, y))
	}
	got := make([]byte, 4)
	ok(t, s.ToHost(got, x), s.Fill(y, 7), s.Sync())
	if v := math.Float32frombits(binary.LittleEndian.Uint32(got)); v != 1024 {
		t.Errorf("1 doubled 10 times is %g", v)
	}
	ok(t, s.ToHost(got, y), s.Close(), d.Free(mem))
	if string(got) != "\a\a\a\a" {
		t.Errorf("filled: %v", got)
	}
	if err := s.Fill(y, 0); err == nil {
		t.Error("work on a closed stream is accepted")
	}
}

func TestArguments(t *testing.T) {
	d, s := open(t, Options{})
	mem := alloc(t, d, 24)
	structure := make(driver.Struct, 16)
	structure[0], structure[8] = 9, 4
	ok(t, s.Launch(kernelOf(t, d, "test_scalars"), [3]int{1, 5, 1}, [3]int{3, 1, 1}, mem, int32(1), uint32(2), int64(3), uint64(4),
		float32(0.5), 0.25, structure))
	structure[0] = 0 // arguments are copied when a launch is queued
	got := make([]byte, 24)
	ok(t, s.ToHost(got, mem), s.Sync())
	for i, want := range []float64{10.75, 5, 23} {
		if v := math.Float64frombits(binary.LittleEndian.Uint64(got[8*i:])); v != want {
			t.Errorf("value %d is %g, want %g", i, v, want)
		}
	}
}

// A tensor is copied on one stream and doubled on another. Without a wait between the two the
// values are wrong in some runs.
func TestMissingWait(t *testing.T) {
	wrong := map[bool]int{}
	for _, waits := range []bool{true, false} {
		if raceDetector && !waits {
			return // the race detector reports it
		}
		for range 20 {
			d, copies := open(t, Options{Delay: time.Millisecond})
			computes, err := d.NewStream()
			if err != nil {
				t.Fatal(err)
			}
			mem := alloc(t, d, 4)
			ok(t, copies.ToDevice(mem, []byte{0, 0, 0x80, 0x3f})) // 1
			e, err := copies.Record(false)
			ok(t, err)
			if waits {
				ok(t, computes.Wait(e))
			}
			got := make([]byte, 4)
			ok(t, computes.Launch(kernelOf(t, d, "test_double"), one, one, mem, mem, int64(1)), computes.ToHost(got, mem),
				computes.Sync(), copies.Sync())
			if got[3] != 0x40 || got[2] != 0 { // 2
				wrong[waits]++
			}
		}
	}
	if wrong[true] > 0 || wrong[false] == 0 {
		t.Errorf("wrong in %d of 20 runs with the wait, in %d without", wrong[true], wrong[false])
	}
}

func TestErrorsStay(t *testing.T) {
	for name, fault := range map[string]struct {
		work func(t *testing.T, d driver.Device, s driver.Stream, freed driver.Mem) error
		want string
	}{
		"freed memory": {func(_ *testing.T, _ driver.Device, s driver.Stream, freed driver.Mem) error {
			return s.Fill(freed, 0)
		}, "was freed"},
		"memory of another device": {func(t *testing.T, _ driver.Device, s driver.Stream, _ driver.Mem) error {
			return s.Fill(alloc(t, Open(Options{Devices: 2})[1], 8), 0)
		}, "another device's"},
		"outside the region": {func(t *testing.T, d driver.Device, s driver.Stream, _ driver.Mem) error {
			return s.Fill(alloc(t, d, 8).Slice(4, 8), 0)
		}, "outside a region"},
		"panic": {func(t *testing.T, d driver.Device, s driver.Stream, _ driver.Mem) error {
			return s.Launch(kernelOf(t, d, "test_panic"), one, one)
		}, "on purpose"},
		"wrong argument": {func(t *testing.T, d driver.Device, s driver.Stream, _ driver.Mem) error {
			return s.Launch(kernelOf(t, d, "test_double"), one, one, int32(1))
		}, "argument 0 is int32"},
		"argument too many": {func(t *testing.T, d driver.Device, s driver.Stream, _ driver.Mem) error {
			return s.Launch(kernelOf(t, d, "test_double"), one, one)
		}, "reads argument 0 of 0"},
		"misaligned": {func(t *testing.T, d driver.Device, s driver.Stream, _ driver.Mem) error {
			m := alloc(t, d, 16)
			return s.Launch(kernelOf(t, d, "test_double"), one, one, m.Slice(1, 8), m, int32(1))
		}, "not aligned"},
		"index": {func(t *testing.T, d driver.Device, s driver.Stream, _ driver.Mem) error {
			m := alloc(t, d, 16)
			return s.Launch(kernelOf(t, d, "test_double"), one, one, m, m, int32(5))
		}, "index out of range"},
	} {
		d, s := open(t, Options{})
		freed := alloc(t, d, 8)
		ok(t, d.Free(freed), fault.work(t, d, s, freed))
		if err := s.Sync(); err == nil || !strings.Contains(err.Error(), fault.want) {
			t.Errorf("%s: got %v, want %q", name, err, fault.want)
		}
		if _, err := d.Alloc(8); err == nil || errors.Is(err, driver.ErrOutOfMemory) {
			t.Errorf("%s: the device goes on: %v", name, err)
		}
	}
}

func TestErrorsOfCalls(t *testing.T) {
	d, s := open(t, Options{Memory: 1000, Largest: 600})
	mem := alloc(t, d, 600)
	double := kernelOf(t, d, "test_double")
	for name, f := range map[string]func() error{
		"too large":      func() error { _, err := d.Alloc(700); return err },
		"full":           func() error { _, err := d.Alloc(500); return err },
		"negative":       func() error { _, err := d.Alloc(-1); return err },
		"part":           func() error { return d.Free(mem.Slice(0, 8)) },
		"unpin":          func() error { return d.Unpin(make([]byte, 8)) },
		"no kernel":      func() error { m, _ := d.Load(""); _, err := m.Kernel("absent"); return err },
		"grid":           func() error { return s.Launch(double, [3]int{0, 1, 1}, one) },
		"block":          func() error { return s.Launch(double, one, [3]int{2048, 1, 1}) },
		"argument":       func() error { return s.Launch(double, one, one, "text") },
		"foreign kernel": func() error { return s.Launch(kernelOf(t, Open(Options{Devices: 1})[0], "test_double"), one, one) },
		"copy":           func() error { return s.ToDevice(mem.Slice(0, 4), make([]byte, 8)) },
		"copy back":      func() error { return s.ToHost(make([]byte, 8), mem.Slice(0, 4)) },
		"overlap":        func() error { return s.Copy(mem.Slice(0, 8), mem.Slice(4, 8)) },
		"peer":           func() error { return s.CopyFrom(mem, Open(Options{Devices: 1})[0], mem) },
	} {
		err := f()
		if err == nil {
			t.Errorf("%s: no error", name)
		}
		if out := name == "too large" || name == "full"; errors.Is(err, driver.ErrOutOfMemory) != out {
			t.Errorf("%s: %v", name, err)
		}
	}
	if free, err := d.FreeMemory(); free != 400 || err != nil {
		t.Errorf("%d bytes free, %v", free, err)
	}
	ok(t, s.Sync())
}

func TestEventTimes(t *testing.T) {
	d, s := open(t, Options{Delay: time.Millisecond})
	mem := alloc(t, d, 8)
	first, err := s.Record(true)
	ok(t, err, s.Fill(mem, 0))
	last, err := s.Record(true)
	ok(t, err, last.Sync())
	if d, err := last.Since(first); d < 0 || err != nil {
		t.Errorf("%v, %v", d, err)
	}
	plain, err := s.Record(false)
	ok(t, err, plain.Sync())
	if _, err := plain.Since(first); err == nil {
		t.Error("an event without time has one")
	}
	plain.Close()
}

func TestPeersAndPinnedMemory(t *testing.T) {
	devices := Open(Options{Devices: 2, Peers: true})
	a, b := alloc(t, devices[0], 8), alloc(t, devices[1], 8)
	if a.Base == b.Base {
		t.Fatal("handles of two devices are equal")
	}
	s, err := devices[0].NewStream()
	ok(t, err)
	other, err := devices[1].NewStream()
	ok(t, err)
	host, err := devices[0].Pinned(8)
	ok(t, err, other.Fill(b, 3), other.Sync(), s.CopyFrom(a, devices[1], b), s.ToHost(host, a), s.Sync())
	if host[7] != 3 {
		t.Errorf("copied %v", host)
	}
	ok(t, devices[0].Unpin(host))
}

// Goroutines share one device, each with a stream.
func TestConcurrentStreams(t *testing.T) {
	d := Open(Options{Devices: 1, Delay: 30 * time.Microsecond})[0]
	double := kernelOf(t, d, "test_double")
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			s, err := d.NewStream()
			if err != nil {
				t.Error(err)
				return
			}
			mem, err := d.Alloc(4)
			if err != nil {
				t.Error(err)
				return
			}
			var b [4]byte
			for range 20 {
				binary.LittleEndian.PutUint32(b[:], math.Float32bits(float32(w)))
				if err := errors.Join(s.ToDevice(mem, b[:]), s.Launch(double, one, one, mem, mem, int64(1)),
					s.ToHost(b[:], mem), s.Sync()); err != nil {
					t.Error(err)
				}
				if v := math.Float32frombits(binary.LittleEndian.Uint32(b[:])); v != float32(2*w) {
					t.Errorf("worker %d got %g", w, v)
				}
			}
			if err := errors.Join(s.Close(), d.Free(mem)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}
