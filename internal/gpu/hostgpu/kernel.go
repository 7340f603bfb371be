package hostgpu

import (
	"fmt"
	"sync"
	"unsafe"

	"github.com/weft-ml/weft/internal/gpu/driver"
)

var (
	kernelsMu sync.RWMutex
	kernels   = map[string]func(a *Args){} // guarded by kernelsMu
)

// RegisterKernel adds a kernel to all devices. It panics if the name is taken. f computes all work
// items of a launch. It runs on the goroutine of a stream, and must not keep a.
func RegisterKernel(name string, f func(a *Args)) {
	kernelsMu.Lock()
	defer kernelsMu.Unlock()
	if kernels[name] != nil {
		panic("hostgpu: two kernels " + name)
	}
	kernels[name] = f
}

// Kernels returns the number of registered kernels, and whether there is one with a name.
func Kernels(name string) (count int, found bool) {
	kernelsMu.RLock()
	defer kernelsMu.RUnlock()
	return len(kernels), kernels[name] != nil
}

// Args are the arguments of a launch, by their positions in [driver.Stream.Launch]. A wrong
// position or type is an error of the device.
type Args struct {
	Grid, Block [3]int

	device *device
	name   string
	args   []any
}

// Len returns the number of arguments.
func (a *Args) Len() int { return len(a.args) }

// wrong ends the kernel. Its stream keeps the error.
func (a *Args) wrong(i int, want string) {
	if i >= len(a.args) {
		panic(fmt.Errorf("hostgpu: kernel %s reads argument %d of %d", a.name, i, len(a.args)))
	}
	panic(fmt.Errorf("hostgpu: kernel %s: argument %d is %T, and not %s", a.name, i, a.args[i], want))
}

// argument returns argument i if there is one, else nil.
func (a *Args) argument(i int) any {
	if i >= len(a.args) {
		return nil
	}
	return a.args[i]
}

// Bytes returns the memory of argument i.
func (a *Args) Bytes(i int) []byte {
	m, ok := a.argument(i).(driver.Mem)
	if !ok {
		a.wrong(i, "memory")
	}
	b, err := a.device.bytes(m)
	if err != nil {
		panic(fmt.Errorf("kernel %s: argument %d: %w", a.name, i, err))
	}
	return b
}

// Slice returns the memory of argument i as elements of a type without pointers. A GPU faults on an
// element whose address is not a multiple of its size, so Slice panics.
func Slice[T any](a *Args, i int) []T {
	b := a.Bytes(i)
	if len(b) == 0 {
		return nil
	}
	var zero T
	if at := uintptr(unsafe.Pointer(unsafe.SliceData(b))); at%unsafe.Sizeof(zero) != 0 {
		panic(fmt.Errorf("hostgpu: kernel %s: argument %d is not aligned for %T", a.name, i, zero))
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(zero)))
}

// Int returns argument i, which is an integer of any type.
func (a *Args) Int(i int) int64 {
	switch v := a.argument(i).(type) {
	case int32:
		return int64(v)
	case uint32:
		return int64(v)
	case int64:
		return v
	case uint64:
		return int64(v)
	}
	a.wrong(i, "an integer")
	return 0
}

// Float32 returns argument i.
func (a *Args) Float32(i int) float32 {
	v, ok := a.argument(i).(float32)
	if !ok {
		a.wrong(i, "float32")
	}
	return v
}

// Float64 returns argument i.
func (a *Args) Float64(i int) float64 {
	v, ok := a.argument(i).(float64)
	if !ok {
		a.wrong(i, "float64")
	}
	return v
}

// Struct returns argument i as a structure of type T.
func Struct[T any](a *Args, i int) T {
	v, ok := a.argument(i).(driver.Struct)
	var out T
	if !ok || len(v) != int(unsafe.Sizeof(out)) {
		a.wrong(i, fmt.Sprintf("a structure of %d bytes", unsafe.Sizeof(out)))
	}
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&out)), len(v)), v)
	return out
}

type module struct{ device *device }

func (d *device) Load(string, ...string) (driver.Module, error) { return module{d}, d.failed() }

type kernel struct {
	device  *device
	name    string
	compute func(a *Args)
}

func (m module) Kernel(name string) (driver.Kernel, error) {
	kernelsMu.RLock()
	defer kernelsMu.RUnlock()
	if f := kernels[name]; f != nil {
		return &kernel{m.device, name, f}, nil
	}
	return nil, fmt.Errorf("hostgpu: there is no kernel %s", name)
}

func (k *kernel) Name() string { return k.name }
