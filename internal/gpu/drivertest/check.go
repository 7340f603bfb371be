package drivertest

import (
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/weft-ml/weft/internal/gpu/driver"
	"github.com/weft-ml/weft/internal/gpu/hostgpu"
)

//go:embed kernels.cl
var source string

//go:embed kernels.ptx
var ptx string

// Outcome is the result of one check.
type Outcome struct {
	Name string
	Note string // a measured value
	Err  error
}

// Load compiles the kernels of this package.
func Load(d driver.Device) (driver.Module, error) {
	switch d.Info().Language {
	case driver.PTX:
		return d.Load(ptx)
	case driver.Go:
		registerTwins()
	case driver.Source:
	}
	return d.Load(source)
}

// registerTwins adds the kernels to devices in software.
var registerTwins = sync.OnceFunc(func() {
	hostgpu.RegisterKernel("nothing", func(*hostgpu.Args) {})
	hostgpu.RegisterKernel("add", func(a *hostgpu.Args) {
		z, x, y := hostgpu.Slice[float32](a, 0), hostgpu.Slice[float32](a, 1), hostgpu.Slice[float32](a, 2)
		for i := range a.Int(3) {
			z[i] = x[i] + y[i]
		}
	})
	hostgpu.RegisterKernel("arguments", func(a *hostgpu.Args) {
		y := hostgpu.Slice[float64](a, 0)
		copy(y, []float64{float64(a.Int(1)), float64(a.Int(2)), float64(a.Int(3)), float64(a.Int(4)), float64(a.Float32(5)), a.Float64(6)})
		for i, v := range hostgpu.Struct[[5]int64](a, 7) {
			y[6+i] = float64(v)
		}
		y[11] = float64(a.Grid[0]*a.Block[0] + 1000*a.Grid[1]*a.Block[1] + 1000000*a.Grid[2]*a.Block[2])
	})
	hostgpu.RegisterKernel("groupsum", func(a *hostgpu.Args) {
		y, x := hostgpu.Slice[float32](a, 0), hostgpu.Slice[float32](a, 1)
		for g := range a.Grid[0] {
			y[g] = 0
			for _, v := range x[128*g : 128*g+128] {
				y[g] += v
			}
		}
	})
	hostgpu.RegisterKernel("slow", func(a *hostgpu.Args) {
		x := hostgpu.Slice[uint32](a, 0)
		<-time.After(time.Duration(a.Int(1)) * time.Nanosecond)
		x[0]++
	})
})

// bench is a device with what the checks need.
type bench struct {
	device driver.Device
	module driver.Module
	stream driver.Stream
	mem    driver.Mem // 4 MiB
}

const benchSize = 4 << 20

func newBench(d driver.Device) (*bench, error) {
	m, err := Load(d)
	if err != nil {
		return nil, err
	}
	s, err := d.NewStream()
	if err != nil {
		return nil, err
	}
	mem, err := d.Alloc(benchSize)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return &bench{d, m, s, mem}, nil
}

func (b *bench) close() error { return errors.Join(b.stream.Close(), b.device.Free(b.mem)) }

// Check runs all checks of one device that need no other device and no library.
func Check(d driver.Device) []Outcome {
	b, err := newBench(d)
	if err != nil {
		return []Outcome{{Name: "load", Err: err}}
	}
	var out []Outcome
	for _, c := range []struct {
		name string
		run  func(b *bench) (string, error)
	}{
		{"properties", checkProperties},
		{"arguments", checkArguments},
		{"elements", checkElements},
		{"shared memory", checkSharedMemory},
		{"order within a stream", checkOrder},
		{"order between streams", checkWait},
		{"events", checkEvents},
		{"page-locked memory", checkPinned},
		{"errors", checkErrors},
		{"free memory", checkFreeMemory},
	} {
		note, err := c.run(b)
		out = append(out, Outcome{c.name, note, err})
	}
	return append(out, Outcome{Name: "close", Err: b.close()})
}

func checkProperties(b *bench) (string, error) {
	i := b.device.Info()
	if i.Name == "" || i.Memory <= 0 || i.LargestAlloc <= 0 || i.LargestAlloc > i.Memory || i.Multiprocessors <= 0 || i.MaxGroup < 128 || i.SharedMemory < 4096 {
		return "", fmt.Errorf("%+v", i)
	}
	return i.Name, nil
}

func (b *bench) launch(name string, grid, block [3]int, args ...any) error {
	k, err := b.module.Kernel(name)
	if err != nil {
		return err
	}
	return b.stream.Launch(k, grid, block, args...)
}

var one = [3]int{1, 1, 1}

func checkArguments(b *bench) (string, error) {
	five := make(driver.Struct, 40)
	for i := range 5 {
		binary.LittleEndian.PutUint64(five[8*i:], uint64(int64(i*i-7)))
	}
	at := b.mem.Slice(512, 96)
	got := make([]byte, 96)
	err := errors.Join(
		b.launch("arguments", [3]int{3, 5, 7}, [3]int{32, 2, 1}, at, int32(-5), uint32(1<<31+1), int64(-1<<40), uint64(1<<52), float32(0.5), -0.25, five),
		b.stream.ToHost(got, at), b.stream.Sync())
	if err != nil {
		return "", err
	}
	for i, want := range []float64{-5, 1<<31 + 1, -1 << 40, 1 << 52, 0.5, -0.25, -7, -6, -3, 2, 9, 96 + 10_000 + 7_000_000} {
		if v := math.Float64frombits(binary.LittleEndian.Uint64(got[8*i:])); v != want {
			err = errors.Join(err, fmt.Errorf("value %d is %g, want %g", i, v, want))
		}
	}
	return "", err
}

func floats(n int, seed uint64) []float32 {
	r := rand.New(rand.NewPCG(seed, 1))
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(r.NormFloat64())
	}
	return v
}

func bytesOf(v []float32) []byte {
	b := make([]byte, 4*len(v))
	for i, x := range v {
		binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(x))
	}
	return b
}

func floatsOf(b []byte) []float32 {
	v := make([]float32, len(b)/4)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return v
}

// group is the number of work items of a group, and groups that of groups for n elements.
var group = [3]int{128, 1, 1}

func groups(n int) [3]int { return [3]int{(n + 127) / 128, 1, 1} }

func checkElements(b *bench) (string, error) {
	const n = 100_003
	x, y, z := b.mem.Slice(256, 4*n), b.mem.Slice(1<<20, 4*n), b.mem.Slice(2<<20, 4*n)
	va, vb, got := floats(n, 1), floats(n, 2), make([]byte, 4*n)
	ba, bb := bytesOf(va), bytesOf(vb)
	if err := errors.Join(b.stream.ToDevice(x, ba), b.stream.ToDevice(y, bb), b.launch("add", groups(n), group, z, x, y, int64(n)),
		b.stream.ToHost(got, z), b.stream.Sync()); err != nil {
		return "", err
	}
	for i, v := range floatsOf(got) {
		if want := va[i] + vb[i]; v != want {
			return "", fmt.Errorf("element %d is %g, want %g", i, v, want)
		}
	}
	return "", nil
}

func checkSharedMemory(b *bench) (string, error) {
	const rows = 300
	x, y := b.mem.Slice(0, 4*128*rows), b.mem.Slice(1<<20, 4*rows)
	values := make([]float32, 128*rows)
	for i := range values {
		values[i] = float32(i % 1000)
	}
	ba, got := bytesOf(values), make([]byte, 4*rows)
	if err := errors.Join(b.stream.ToDevice(x, ba), b.launch("groupsum", [3]int{rows, 1, 1}, group, y, x), b.stream.ToHost(got, y),
		b.stream.Sync()); err != nil {
		return "", err
	}
	for r, v := range floatsOf(got) {
		want := float32(0)
		for _, e := range values[128*r : 128*r+128] {
			want += e
		}
		if v != want { // sums of small integers are exact
			return "", fmt.Errorf("group %d is %g, want %g", r, v, want)
		}
	}
	return "", nil
}

// checkOrder queues fills, copies of several kinds and kernels on one stream, without a wait
// between them.
func checkOrder(b *bench) (string, error) {
	s := b.stream
	x, y := b.mem.Slice(0, 4096), b.mem.Slice(1<<20, 4096)
	first, got, filled := bytesOf(floats(1024, 3)), make([]byte, 4096), make([]byte, 4096)
	err := errors.Join(s.Fill(x, 0), s.Fill(y, 0x7f), s.ToDevice(x, first))
	for range 10 {
		err = errors.Join(err, b.launch("add", groups(1024), group, x, x, x, int64(1024)), s.Copy(y, x), s.Fill(x, 0), s.Copy(x, y))
	}
	err = errors.Join(err, s.ToHost(got, x), s.Fill(x, 0xa5), s.ToHost(filled, x), s.ToDevice(x, nil), s.ToHost(nil, x), s.Sync())
	if err != nil {
		return "", err
	}
	for i, v := range floatsOf(got) {
		if want := floatsOf(first)[i] * 1024; v != want || filled[4*i] != 0xa5 {
			return "", fmt.Errorf("element %d is %g, want %g; filled with %#x", i, v, want, filled[4*i])
		}
	}
	return "", nil
}

// slowSteps take some milliseconds.
const slowSteps = 5_000_000

// checkWait lets a stream read what another one writes after a slow kernel.
func checkWait(b *bench) (string, error) {
	other, err := b.device.NewStream()
	if err != nil {
		return "", err
	}
	x := b.mem.Slice(0, 4)
	got := make([]byte, 4)
	for i := range 5 {
		if err := errors.Join(b.stream.Fill(x, 0), b.launch("slow", one, one, x, int64(slowSteps))); err != nil {
			return "", err
		}
		e, err := b.stream.Record(false)
		if err != nil {
			return "", err
		}
		if err := errors.Join(other.Wait(e), other.ToHost(got, x), other.Sync()); err != nil {
			return "", err
		}
		e.Close()
		if got[0] == 0 {
			return "", fmt.Errorf("round %d: the stream did not wait", i)
		}
	}
	return "", other.Close()
}

func checkEvents(b *bench) (string, error) {
	first, err := b.stream.Record(true)
	if err != nil {
		return "", err
	}
	start := time.Now()
	if err := b.launch("slow", one, one, b.mem.Slice(0, 4), int64(slowSteps)); err != nil {
		return "", err
	}
	last, err := b.stream.Record(true)
	if err != nil {
		return "", err
	}
	early, err := last.Done()
	if err != nil {
		return "", err
	}
	if err := last.Sync(); err != nil {
		return "", err
	}
	wall := time.Since(start)
	if done, err := last.Done(); !done || err != nil {
		return "", fmt.Errorf("after Sync the event is done: %v, %w", done, err)
	}
	took, err := last.Since(first)
	if err != nil {
		return "", err
	}
	plain, err := b.stream.Record(false)
	if err != nil {
		return "", err
	}
	for done := false; !done; {
		if done, err = plain.Done(); err != nil {
			return "", err
		}
	}
	if _, err := plain.Since(first); err == nil {
		return "", errors.New("an event without time has one")
	}
	first.Close()
	last.Close()
	plain.Close()
	if early || took <= 0 || took > 2*wall+time.Millisecond {
		return "", fmt.Errorf("%v on the device, %v outside; done at once: %v", took, wall, early)
	}
	return fmt.Sprintf("slow kernel: %v on the device, %v outside", took.Round(time.Microsecond), wall.Round(time.Microsecond)), nil
}

func checkPinned(b *bench) (string, error) {
	host, err := b.device.Pinned(1 << 20)
	if err != nil {
		return "", err
	}
	for i := range host {
		host[i] = byte(i >> 8)
	}
	x := b.mem.Slice(0, 1<<20)
	if err := errors.Join(b.stream.ToDevice(x, host), b.stream.Sync()); err != nil {
		return "", err
	}
	clear(host)
	if err := errors.Join(b.stream.ToHost(host, x), b.stream.Sync()); err != nil {
		return "", err
	}
	for i := range host {
		if host[i] != byte(i>>8) {
			return "", fmt.Errorf("byte %d is %d", i, host[i])
		}
	}
	if err := b.device.Unpin(host); err != nil {
		return "", err
	}
	if b.device.Unpin(make([]byte, 8)) == nil {
		return "", errors.New("memory that was never pinned can be unpinned")
	}
	return "", nil
}

// checkErrors makes calls fail, and checks that the device goes on.
func checkErrors(b *bench) (string, error) {
	add, err := b.module.Kernel("add")
	if err != nil {
		return "", err
	}
	if b.device.Info().Language != driver.Go {
		if _, err := b.device.Load(".version 1.0 nonsense"); err == nil {
			return "", errors.New("nonsense compiles")
		}
	}
	if _, err := b.module.Kernel("absent"); err == nil {
		return "", errors.New("a kernel that is not there is found")
	}
	if _, err := b.device.Alloc(1 << 50); !errors.Is(err, driver.ErrOutOfMemory) {
		return "", fmt.Errorf("a petabyte: %w", err)
	}
	if b.stream.Launch(add, one, one, b.mem, "text") == nil {
		return "", errors.New("an argument of type string is accepted")
	}
	if b.stream.Launch(add, one, [3]int{1 << 20, 1, 1}, b.mem, b.mem, b.mem, int64(1)) == nil {
		return "", errors.New("a group of 2^20 work items is accepted")
	}
	if b.stream.ToDevice(b.mem.Slice(0, 4), make([]byte, 8)) == nil {
		return "", errors.New("a copy to less memory is accepted")
	}
	_, err = checkElements(b)
	return "", err
}

func checkFreeMemory(b *bench) (string, error) {
	before, err := b.device.FreeMemory()
	if err != nil {
		return "", err
	}
	size := min(b.device.Info().LargestAlloc, b.device.Info().Memory/4, 256<<20)
	m, err := b.device.Alloc(int(size))
	if err != nil {
		return "", err
	}
	during, err := b.device.FreeMemory()
	if err != nil {
		return "", err
	}
	if err := b.device.Free(m); err != nil {
		return "", err
	}
	if before-during < size/2 { // other processes may allocate and free
		return "", fmt.Errorf("%d bytes are free before, %d after an allocation of %d", before, during, size)
	}
	return fmt.Sprintf("%d MiB free of %d", before>>20, b.device.Info().Memory>>20), nil
}

// Peers copies between all pairs of devices that can.
func Peers(devices []driver.Device) []Outcome {
	var out []Outcome
	for i, from := range devices {
		for j, to := range devices {
			if i != j && to.CanCopy(from) {
				out = append(out, Outcome{Name: fmt.Sprintf("copy from device %d to %d", i, j), Err: peer(from, to)})
			}
		}
	}
	return out
}

func peer(from, to driver.Device) error {
	a, err := newBench(from)
	if err != nil {
		return err
	}
	b, err := newBench(to)
	if err != nil {
		return errors.Join(err, a.close())
	}
	want, got := bytesOf(floats(1<<18, 5)), make([]byte, 1<<20)
	x, y := a.mem.Slice(512, 1<<20), b.mem.Slice(256, 1<<20)
	if err := errors.Join(a.stream.ToDevice(x, want), a.stream.Sync(), b.stream.CopyFrom(y, from, x), b.stream.ToHost(got, y), b.stream.Sync()); err != nil {
		return err
	}
	if string(got) != string(want) {
		return errors.New("other bytes arrived")
	}
	return errors.Join(a.close(), b.close())
}
