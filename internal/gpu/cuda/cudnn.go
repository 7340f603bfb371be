//go:build gpu

package cuda

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"github.com/weft-ml/weft/internal/gpu/dl"
	"github.com/weft-ml/weft/internal/gpu/driver"
	"github.com/weft-ml/weft/tensor"
)

// cd are the functions of cuDNN 8 and 9 for single convolutions.
var cd struct {
	Create, SetStream, GetVersion, CreateTensorDescriptor, SetTensor4dDescriptorEx, DestroyTensorDescriptor,
	CreateFilterDescriptor, SetFilter4dDescriptor, DestroyFilterDescriptor, CreateConvolutionDescriptor,
	SetConvolution2dDescriptor, SetConvolutionGroupCount, SetConvolutionMathType, DestroyConvolutionDescriptor,
	GetConvolutionForwardAlgorithm_v7, GetConvolutionBackwardDataAlgorithm_v7,
	GetConvolutionBackwardFilterAlgorithm_v7, ConvolutionForward, ConvolutionBackwardData, ConvolutionBackwardFilter,
	TransformTensor uintptr
}

var openDNN = sync.OnceValue(func() error {
	l, err := dl.Open("WEFT_CUDNN", versions("libcudnn", 9, 8)...)
	if err != nil {
		return err
	}
	return l.Bind("cudnn", &cd)
})

// dnn is cuDNN with its handle for one device.
type dnn struct {
	device  *device
	version int
	scalars *scalars

	mu     sync.Mutex // held from the choice of the stream until all work of a call is queued
	handle uintptr
	stream uintptr           // guarded by mu; the chosen stream
	plans  map[planKey]*plan // guarded by mu
}

func (d *device) DNN() (driver.DNN, error) {
	d.dnnOnce.Do(func() { d.dnn, d.dnnErr = d.newDNN() })
	if d.dnnErr != nil {
		return nil, d.dnnErr
	}
	return d.dnn, nil
}

func (d *device) newDNN() (*dnn, error) {
	if err := openDNN(); err != nil {
		return nil, err
	}
	d.enter()
	defer leave()
	l := &dnn{device: d, version: int(dl.Call(cd.GetVersion)), scalars: newScalars(), plans: map[planKey]*plan{}}
	return l, dnnCall("cudnnCreate", cd.Create, uintptr(unsafe.Pointer(&l.handle)))
}

// Name returns the version. It is major*1000+minor*100+patch up to version 8, and has one more
// digit for the minor version since.
func (l *dnn) Name() string {
	if l.version >= 90000 {
		return fmt.Sprintf("cuDNN %d.%d.%d", l.version/10000, l.version%10000/100, l.version%100)
	}
	return fmt.Sprintf("cuDNN %d.%d.%d", l.version/1000, l.version%1000/100, l.version%100)
}

// dnnError is a status of cuDNN.
type dnnError struct {
	call string
	code uint32
}

func (e *dnnError) Error() string { return fmt.Sprintf("cuDNN: %s: status %d", e.call, e.code) }

// Statuses for arguments that cuDNN has no implementation for: of version 8, and of version 9.
func (e *dnnError) Unwrap() error {
	if e.code == 9 || e.code >= 3000 && e.code < 4000 {
		return driver.ErrUnsupported
	}
	return nil
}

// dnnCall calls a function that returns a status. See package dl for pointers in args.
//
//go:uintptrescapes
func dnnCall(name string, fn uintptr, args ...uintptr) error {
	if code := uint32(dl.Call(fn, args...)); code != 0 {
		return &dnnError{name, code}
	}
	return nil
}

// planKey is what a plan depends on.
type planKey struct {
	kind driver.ConvKind
	conv driver.Conv
}

// maxPlans bounds the plans that are kept. All are dropped when there are more.
const maxPlans = 1024

// Conv queues a convolution. The first one of a shape chooses the method by cuDNN's heuristics.
func (l *dnn) Conv(s driver.Stream, kind driver.ConvKind, x, w, y driver.Mem, p driver.Conv, scratch driver.Scratch) error {
	own, ok := s.(*stream)
	if !ok || own.device != l.device {
		return errors.New("cuDNN: stream of another device")
	}
	l.device.enter()
	defer leave()
	l.mu.Lock()
	defer l.mu.Unlock()
	if own.handle != l.stream {
		if err := dnnCall("cudnnSetStream", cd.SetStream, l.handle, own.handle); err != nil {
			return err
		}
		l.stream = own.handle
	}
	plan := l.plans[planKey{kind, p}]
	if plan == nil {
		var err error
		if plan, err = l.newPlan(kind, p); err != nil {
			return err
		}
		if len(l.plans) >= maxPlans {
			for _, old := range l.plans {
				old.close()
			}
			clear(l.plans)
		}
		l.plans[planKey{kind, p}] = plan
	}
	return l.run(own, plan, [3]driver.Mem{x, w, y}, scratch)
}

// run queues the conversions and the convolution of a plan.
func (l *dnn) run(s *stream, p *plan, user [3]driver.Mem, scratch driver.Scratch) error {
	one := uintptr(unsafe.Pointer(&l.scalars.one))   // on the heap: a part of l
	zero := uintptr(unsafe.Pointer(&l.scalars.zero)) // on the heap: a part of l
	if p.key.conv.Type == tensor.Float64 {
		one = uintptr(unsafe.Pointer(&l.scalars.one64))   // on the heap: a part of l
		zero = uintptr(unsafe.Pointer(&l.scalars.zero64)) // on the heap: a part of l
	}
	var at [3]uintptr
	for i := range p.operands {
		o := &p.operands[i]
		at[i] = address(user[i])
		if !o.convert {
			continue
		}
		m, ok := scratch(o.bytes)
		if !ok {
			return fmt.Errorf("cuDNN: %d bytes for the layout of an operand: %w", o.bytes, driver.ErrOutOfMemory)
		}
		at[i] = address(m)
		if i == p.result() {
			continue
		}
		if o.padded {
			if err := call("cuMemsetD8Async", cu.MemsetD8Async, at[i], 0, uintptr(o.bytes), s.handle); err != nil {
				return err
			}
		}
		if err := dnnCall("cudnnTransformTensor", cd.TransformTensor, l.handle, one, o.user, address(user[i]), zero, o.inner, at[i]+uintptr(o.at)); err != nil {
			return err
		}
	}
	if err := l.convolve(p, at, one, zero, scratch); err != nil {
		return err
	}
	i := p.result()
	if o := &p.operands[i]; o.convert {
		return dnnCall("cudnnTransformTensor", cd.TransformTensor, l.handle, one, o.inner, at[i]+uintptr(o.at), zero, o.user, address(user[i]))
	}
	return nil
}

// convolve queues the convolution with the first method for which there is memory.
func (l *dnn) convolve(p *plan, at [3]uintptr, one, zero uintptr, scratch driver.Scratch) error {
	for _, m := range p.methods {
		var work driver.Mem
		if m.bytes > 0 {
			var ok bool
			if work, ok = scratch(m.bytes); !ok {
				continue
			}
		}
		if err := dnnCall("cudnnSetConvolutionMathType", cd.SetConvolutionMathType, p.conv, m.math); err != nil {
			return err
		}
		x, w, y := p.operands[0].whole, p.operands[1].whole, p.operands[2].whole
		switch p.key.kind {
		case driver.ConvForward:
			return dnnCall("cudnnConvolutionForward", cd.ConvolutionForward, l.handle, one, x, at[0], w, at[1], p.conv, m.algo,
				address(work), uintptr(m.bytes), zero, y, at[2])
		case driver.ConvBackwardData:
			return dnnCall("cudnnConvolutionBackwardData", cd.ConvolutionBackwardData, l.handle, one, w, at[1], y, at[2], p.conv,
				m.algo, address(work), uintptr(m.bytes), zero, x, at[0])
		case driver.ConvBackwardFilter:
			return dnnCall("cudnnConvolutionBackwardFilter", cd.ConvolutionBackwardFilter, l.handle, one, x, at[0], y, at[2], p.conv,
				m.algo, address(work), uintptr(m.bytes), zero, w, at[1])
		}
	}
	return fmt.Errorf("cuDNN: no memory for any of %d methods: %w", len(p.methods), driver.ErrOutOfMemory)
}
