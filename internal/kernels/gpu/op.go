package gpu

import (
	"errors"
	"sync"

	"github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/kernel"
)

// compute queues the work of a node on a device. It returns errDetour, before it has changed
// anything, for inputs that it does not handle: rare forms, and inputs for which the CPU's kernel
// returns an error.
type compute func(ctx *kernel.Context, d *device.Device) error

// errDetour makes the CPU's kernel compute instead.
var errDetour = kernel.ErrDetour

// registerOp registers a kernel without attributes.
func registerOp(op string, f compute) {
	registerNew(op, func(*kernel.Construction) (compute, error) { return f, nil })
}

// registerNew registers a kernel. n reads the attributes. If it returns errDetour, the CPU
// computes.
func registerNew(op string, n func(*kernel.Construction) (compute, error), types ...kernel.Constraint) {
	Register(op, func(c *kernel.Construction) (kernel.Kernel, error) {
		f, err := n(c)
		switch {
		case err == nil:
			return &deviceKernel{compute: f, c: *c}, nil
		case errors.Is(err, errDetour):
			return &deviceKernel{compute: func(*kernel.Context, *device.Device) error { return errDetour }, c: *c}, nil
		}
		return nil, err
	}, types...)
}

// deviceKernel computes on the device, or else by a detour.
type deviceKernel struct {
	compute compute
	c       kernel.Construction
	once    sync.Once
	detour  kernel.Kernel // made when it is first needed
	err     error         // of making it
}

// Compute implements kernel.Kernel.
func (k *deviceKernel) Compute(ctx *kernel.Context) error {
	err := k.compute(ctx, ctx.GPU())
	if !errors.Is(err, errDetour) {
		return err
	}
	k.once.Do(func() {
		var host []string
		if impl := kernel.Default.Find(k.c.Op.Name, kernel.GPU, k.c.Attrs); impl != nil {
			host = impl.Host
		}
		k.detour, k.err = hosted(k.c.Op.Name, host, true)(&k.c)
	})
	if k.err != nil {
		return k.err
	}
	return ctx.OnHost(func() error { return k.detour.Compute(ctx) })
}

// launch queues a kernel over n elements. It does nothing for none.
func launch(d *device.Device, name string, n int64, args ...any) error {
	return d.LaunchLine(name, n, args...)
}

// rows queues a kernel with a group of 256 items for each of n rows.
func rows(d *device.Device, name string, n int64, args ...any) error {
	if n == 0 {
		return nil
	}
	return d.Launch(name, [3]int{int(min(n, 1<<20)), 1, 1}, [3]int{256, 1, 1}, args...)
}
