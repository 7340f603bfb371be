package device

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-ml/weft/internal/gpu/driver"
	"github.com/weft-ml/weft/status"
)

// Options are the parameters of a device.
type Options struct {
	// Name is the canonical name of the device, for errors.
	Name string
	// Number is the number of the device. The allocator is named after it.
	Number int
	// GPU is the number of the hardware among that of its driver.
	GPU int
	// Memory is the limit of the pool, in bytes; 0 means all memory of the device.
	Memory int64
	// Retry is how long an allocation waits for others to free memory; 0 means not at all.
	Retry time.Duration
	// Growth takes memory from the driver as it is needed, instead of all at once.
	Growth bool
}

// Device is a GPU with its memory, streams and kernels. It is safe for concurrent use.
type Device struct {
	opts      Options
	dev       driver.Device
	info      driver.Info
	allocator string
	memory    *memory
	compute   *stream
	in, out   *stream // copies to the device and to the host
	staging   staging
	moves     sync.WaitGroup // goroutines that empty staging memory
	kernels   kernels
	failed    atomic.Pointer[status.Error] // error after which the device cannot be used
	counters  counters
	tracing   tracing

	closing sync.Once
}

// counters are the statistics of a device since it was opened.
type counters struct {
	launches                   atomic.Int64
	kernelTime                 atomic.Int64 // ns, estimated
	toDevice, toHost, peer     atomic.Int64 // copies
	toDeviceBytes, toHostBytes atomic.Int64
	peerBytes                  atomic.Int64
}

// Stats are the statistics of a device since it was opened.
type Stats struct {
	InUse, Peak, Limit, Reserved int64 // bytes
	Launches                     int64
	KernelTime                   time.Duration // estimated from the times of some kernels
	ToDevice, ToHost, Peer       int64         // copies
	ToDeviceBytes, ToHostBytes   int64
	PeerBytes                    int64
}

// Open makes a device of a driver usable. The caller must call Close.
func Open(dev driver.Device, opts Options) (*Device, error) {
	d := &Device{opts: opts, dev: dev, info: dev.Info(), allocator: fmt.Sprintf("GPU_%d_bfc", opts.Number)}
	d.staging.dev = dev
	d.kernels.d = d
	if opts.Memory <= 0 || opts.Memory > d.info.Memory {
		d.opts.Memory = d.info.Memory
	}
	var err error
	if d.memory, err = newMemory(d); err != nil {
		return nil, err
	}
	for i, s := range []**stream{&d.compute, &d.in, &d.out} {
		if *s, err = newStream(d, i+1); err != nil {
			d.Close()
			return nil, err
		}
	}
	return d, nil
}

// Close waits for the work of the device and releases it. Tensors on the device keep their
// addresses and have no memory afterwards.
func (d *Device) Close() {
	d.closing.Do(func() {
		for _, s := range d.streams() {
			s.close()
		}
		d.moves.Wait()
		d.staging.close()
		d.memory.close()
	})
}

// streams returns the streams that exist.
func (d *Device) streams() []*stream {
	return slices.DeleteFunc([]*stream{d.compute, d.in, d.out}, func(s *stream) bool { return s == nil })
}

// closedError is the error of work after Close.
func (d *Device) closedError() error { return status.Cancelledf("%s has been closed", d.opts.Name) }

// Info describes the hardware.
func (d *Device) Info() driver.Info { return d.info }

// Driver returns the device of the driver, for libraries of products and convolutions.
func (d *Device) Driver() driver.Device { return d.dev }

// Name returns the canonical name of the device.
func (d *Device) Name() string { return d.opts.Name }

// Allocator returns the name of the allocator of the device's memory, which is TensorFlow's.
func (d *Device) Allocator() string { return d.allocator }

// Number returns the number of the device.
func (d *Device) Number() int { return d.opts.Number }

// Limit returns the most bytes that tensors on the device may have.
func (d *Device) Limit() int64 { return d.opts.Memory }

// Description returns TensorFlow's description of the hardware.
func (d *Device) Description() string {
	s := fmt.Sprintf("device: %d, name: %s, pci bus id: %s", d.opts.GPU, d.info.Name, d.info.BusID)
	if c := d.info.Capability; c != [2]int{} {
		s += fmt.Sprintf(", compute capability: %d.%d", c[0], c[1])
	}
	return s
}

// Stats returns the statistics of the device.
func (d *Device) Stats() Stats {
	p, c := d.memory.pool.Stats(), &d.counters
	s := Stats{InUse: p.InUse, Peak: p.PeakInUse, Limit: p.Limit, Reserved: p.Reserved}
	s.KernelTime = d.kernelTime()
	s.Launches, s.ToDevice, s.ToHost, s.Peer = c.launches.Load(), c.toDevice.Load(), c.toHost.Load(), c.peer.Load()
	s.ToDeviceBytes, s.ToHostBytes, s.PeerBytes = c.toDeviceBytes.Load(), c.toHostBytes.Load(), c.peerBytes.Load()
	return s
}

// check records an error of the driver after which the device cannot be used, and returns it with
// its code.
func (d *Device) check(err error) error {
	if err == nil {
		return nil
	}
	lost := status.Internalf("%s: %s failed: %v", d.opts.Name, d.info.Name, err)
	d.failed.CompareAndSwap(nil, lost)
	return lost
}

// Err returns the error after which the device cannot be used, or nil.
func (d *Device) Err() error {
	if err := d.failed.Load(); err != nil {
		return err
	}
	return nil
}
