package device

import (
	"fmt"
	"sync"

	"github.com/weft-ml/weft/internal/gpu/driver"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Program is the source of some kernels. It is compiled for a device when one of them is first
// used.
type Program struct {
	Name    string   // unique
	Kernels []string // names; all programs together have each name once
	// Text returns the program in a language with the definitions for its preprocessor.
	Text func(language driver.Language) (text string, defines []string)
}

// programs are the registered programs by the names of their kernels. Only init functions change
// it.
var programs = map[string]*Program{}

// Register adds programs. The init functions of packages with kernels call it.
func Register(list ...Program) {
	for i := range list {
		p := &list[i]
		for _, name := range p.Kernels {
			if programs[name] != nil {
				panic("device: there are two kernels " + name)
			}
			programs[name] = p
		}
	}
}

// finders look for the programs of kernels. Only init functions change it.
var finders []func(kernel string) *Program

// RegisterFinder adds a function that returns the program of a kernel, or nil. The init functions
// of packages with many kernels call it instead of [Register].
func RegisterFinder(f func(kernel string) *Program) { finders = append(finders, f) }

// programOf returns the program of a kernel, or nil.
func programOf(kernel string) *Program {
	if p := programs[kernel]; p != nil {
		return p
	}
	for _, f := range finders {
		if p := f(kernel); p != nil {
			return p
		}
	}
	return nil
}

// HasKernel reports whether a registered program has a kernel.
func HasKernel(name string) bool { return programOf(name) != nil }

// kernels are the compiled kernels of a device.
type kernels struct {
	d       *Device
	modules sync.Map // *module by name of the program
	byName  sync.Map // driver.Kernel by name
}

// module is a program on a device. It is compiled once.
type module struct {
	once sync.Once
	m    driver.Module
	err  error
}

// find returns a kernel, and compiles its program if it is the first of it.
func (k *kernels) find(name string) (driver.Kernel, error) {
	if found, ok := k.byName.Load(name); ok {
		return found.(driver.Kernel), nil //nolint:forcetypeassert // the map has no other values
	}
	p := programOf(name)
	if p == nil {
		return nil, status.Internalf("no program has a kernel %s", name)
	}
	made, _ := k.modules.LoadOrStore(p.Name, new(module))
	m := made.(*module) //nolint:forcetypeassert // the map has no other values
	m.once.Do(func() {
		text, defines := p.Text(k.d.info.Language)
		if m.m, m.err = k.d.dev.Load(text, defines...); m.err != nil {
			m.err = status.Internalf("cannot compile the program %s for %s: %v", p.Name, k.d.info.Name, m.err)
		}
	})
	if m.err != nil {
		return nil, m.err
	}
	kernel, err := m.m.Kernel(name)
	if err != nil {
		return nil, status.Internalf("the program %s has no kernel %s for %s: %v", p.Name, name, k.d.info.Name, err)
	}
	k.byName.Store(name, kernel)
	return kernel, nil
}

// Prepare compiles the program of a kernel, if that has not happened.
func (d *Device) Prepare(name string) error {
	_, err := d.kernels.find(name)
	return err
}

// Launch queues a kernel with groups groups of items work items each. It returns when the kernel is
// queued. An argument is a *tensor.Tensor on the device, which the kernel gets as a region and an
// offset, or a driver.Mem, int32, uint32, int64, uint64, float32, float64 or driver.Struct. Launch
// replaces the tensors in args.
func (d *Device) Launch(name string, groups, items [3]int, args ...any) error {
	k, err := d.kernels.find(name)
	if err != nil {
		return err
	}
	for i, arg := range args {
		switch a := arg.(type) {
		case *tensor.Tensor:
			args[i] = d.Mem(a)
		case driver.Mem, int32, uint32, int64, uint64, float32, float64, driver.Struct:
		default:
			return status.Internalf("argument %d of kernel %s has type %T", i, name, arg)
		}
	}
	d.counters.launches.Add(1)
	w := work{
		do:   func(s driver.Stream) error { return s.Launch(k, groups, items, args...) },
		kind: kernelWork, name: name, groups: groups, items: items,
	}
	if err := d.compute.queue(w, nil); err != nil {
		return fmt.Errorf("kernel %s: %w", name, err)
	}
	return nil
}

// Do calls f to queue work of a library on the compute stream. The calls of libraries that keep
// state for a stream are so ordered with the launches of kernels. Traces name the work as given.
func (d *Device) Do(name string, f func(driver.Stream) error) error {
	d.counters.launches.Add(1)
	return d.compute.queue(work{do: f, kind: kernelWork, name: name}, nil)
}

// Fill sets all bytes of a tensor on the device.
func (d *Device) Fill(t *tensor.Tensor, value byte) error {
	if len(t.Bytes()) == 0 {
		return nil
	}
	mem := d.Mem(t)
	return d.compute.queue(work{do: func(s driver.Stream) error { return s.Fill(mem, value) }}, nil)
}
