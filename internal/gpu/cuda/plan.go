//go:build gpu

package cuda

import (
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"github.com/weft-ml/weft/internal/gpu/dl"
	"github.com/weft-ml/weft/internal/gpu/driver"
	"github.com/weft-ml/weft/tensor"
)

// plan is how one convolution is computed: descriptors of cuDNN, and methods from the fastest on.
type plan struct {
	key      planKey
	conv     uintptr
	operands [3]operand // x, w, y
	methods  []method
}

// operand is a tensor as the caller has it and as cuDNN needs it. They differ in the layout of
// filters, where cuDNN has no method for the caller's layout, and where the padding has two sides
// of different sizes, which cuDNN does not know.
type operand struct {
	whole   uintptr // descriptor of what cuDNN works on: of a filter or tensor
	convert bool    // whether it is a copy of the caller's
	padded  bool    // whether the copy has more elements than the caller's
	user    uintptr // descriptor of the caller's tensor
	inner   uintptr // descriptor of the caller's elements within the copy
	at      int     // where they begin in the copy, in bytes
	bytes   int     // size of the copy
}

// method is one of cuDNN's algorithms with its memory in bytes.
type method struct {
	algo, math uintptr
	bytes      int
}

// result is the index of the operand that is computed.
func (p *plan) result() int {
	switch p.key.kind {
	case driver.ConvForward:
		return 2
	case driver.ConvBackwardData:
		return 0
	case driver.ConvBackwardFilter:
		return 1
	}
	return 2
}

func (p *plan) close() {
	for i := range p.operands {
		o := &p.operands[i]
		for _, t := range []uintptr{o.user, o.inner} {
			if t != 0 {
				dl.Call(cd.DestroyTensorDescriptor, t)
			}
		}
		destroy := cd.DestroyTensorDescriptor
		if i == 1 {
			destroy = cd.DestroyFilterDescriptor
		}
		if o.whole != 0 {
			dl.Call(destroy, o.whole)
		}
	}
	if p.conv != 0 {
		dl.Call(cd.DestroyConvolutionDescriptor, p.conv)
	}
}

// Names of cuDNN.
const (
	dnnFloat    = 0
	dnnDouble   = 1
	dnnHalf     = 2
	dnnBFloat16 = 9

	dnnNCHW = 0
	dnnNHWC = 1

	crossCorrelation = 1

	mathDefault   = 0 // TF32 for float32 where the GPU has it
	mathTensorOps = 1
	mathFMA       = 3
)

// newPlan tries the caller's layout and then the other one. l.mu is held, and the device entered.
func (l *dnn) newPlan(kind driver.ConvKind, c driver.Conv) (*plan, error) {
	var tried []error
	layouts := []driver.ChannelOrder{c.Channels, driver.NHWC + driver.NCHW - c.Channels}
	for _, layout := range layouts {
		p := &plan{key: planKey{kind, c}}
		err := p.build(l, layout)
		if err == nil {
			return p, nil
		}
		p.close()
		tried = append(tried, err)
	}
	return nil, errors.Join(tried...)
}

// shape is the sizes of a tensor in the order of cuDNN: images, channels, rows, columns.
type shape [4]int

// strides returns the distances of elements of a dense tensor.
func (s shape) strides(layout driver.ChannelOrder) shape {
	if layout == driver.NHWC {
		return shape{s[1] * s[2] * s[3], 1, s[3] * s[1], s[1]}
	}
	return shape{s[1] * s[2] * s[3], s[2] * s[3], s[3], 1}
}

func (s shape) elements() int { return s[0] * s[1] * s[2] * s[3] }

func (p *plan) build(l *dnn, layout driver.ChannelOrder) error {
	c := &p.key.conv
	data, compute, math := uintptr(dnnFloat), uintptr(dnnFloat), uintptr(mathFMA)
	switch c.Type {
	case tensor.Float32:
		if c.TF32 {
			math = mathDefault
		}
	case tensor.Float64:
		data, compute, math = dnnDouble, dnnDouble, mathDefault
	case tensor.Float16:
		data, math = dnnHalf, mathTensorOps
	case tensor.BFloat16:
		data, math = dnnBFloat16, mathTensorOps
	default:
		return fmt.Errorf("cuDNN: %v: %w", c.Type, driver.ErrUnsupported)
	}
	// The padding that both sides have is cuDNN's; the rest is part of a copy.
	padH, padW := min(c.PadTop, c.PadBottom), min(c.PadLeft, c.PadRight)
	inner := shape{c.Batch, c.InC, c.InH, c.InW}
	whole := shape{c.Batch, c.InC, c.InH + c.PadTop + c.PadBottom - 2*padH, c.InW + c.PadLeft + c.PadRight - 2*padW}
	out := shape{c.Batch, c.OutC, c.OutH, c.OutW}
	skip := whole.strides(layout)
	at := (c.PadTop-padH)*skip[2] + (c.PadLeft-padW)*skip[3]
	if err := errors.Join(
		p.operands[0].set(data, c.Type.Size(), inner, inner.strides(c.Channels), whole, whole.strides(layout), at),
		p.operands[2].set(data, c.Type.Size(), out, out.strides(c.Channels), out, out.strides(layout), 0),
		p.setFilter(data, layout),
		dnnCall("cudnnCreateConvolutionDescriptor", cd.CreateConvolutionDescriptor, uintptr(unsafe.Pointer(&p.conv))),
	); err != nil {
		return err
	}
	if err := errors.Join(
		dnnCall("cudnnSetConvolution2dDescriptor", cd.SetConvolution2dDescriptor, p.conv, uintptr(padH), uintptr(padW), uintptr(c.StrideH),
			uintptr(c.StrideW), uintptr(c.DilationH), uintptr(c.DilationW), crossCorrelation, compute),
		dnnCall("cudnnSetConvolutionGroupCount", cd.SetConvolutionGroupCount, p.conv, uintptr(max(c.Groups, 1))),
		dnnCall("cudnnSetConvolutionMathType", cd.SetConvolutionMathType, p.conv, math),
	); err != nil {
		return err
	}
	return p.choose(l)
}

// set makes the descriptors of an image. The caller's elements begin at an element of the whole.
func (o *operand) set(data uintptr, size int, user, userStrides, whole, strides shape, at int) error {
	o.padded = user != whole
	o.convert = o.padded || userStrides != strides
	o.at, o.bytes = at*size, whole.elements()*size
	return errors.Join(
		tensorDescriptor(&o.whole, data, whole, strides),
		tensorDescriptor(&o.user, data, user, userStrides),
		tensorDescriptor(&o.inner, data, user, strides),
	)
}

// setFilter makes the descriptors of the filter, which is a copy always: TensorFlow's filters have
// the output channels innermost.
func (p *plan) setFilter(data uintptr, layout driver.ChannelOrder) error {
	c, o := &p.key.conv, &p.operands[1]
	s := shape{c.OutC, c.InC / max(c.Groups, 1), c.KernelH, c.KernelW}
	o.convert, o.bytes = true, s.elements()*c.Type.Size()
	format := uintptr(dnnNCHW)
	if layout == driver.NHWC {
		format = dnnNHWC
	}
	if err := dnnCall("cudnnCreateFilterDescriptor", cd.CreateFilterDescriptor, uintptr(unsafe.Pointer(&o.whole))); err != nil {
		return err
	}
	return errors.Join(
		dnnCall("cudnnSetFilter4dDescriptor", cd.SetFilter4dDescriptor, o.whole, data, format, uintptr(s[0]), uintptr(s[1]), uintptr(s[2]), uintptr(s[3])),
		tensorDescriptor(&o.user, data, s, shape{1, s[0], s[3] * s[1] * s[0], s[1] * s[0]}),
		tensorDescriptor(&o.inner, data, s, s.strides(layout)),
	)
}

func tensorDescriptor(to *uintptr, data uintptr, s, strides shape) error {
	if err := dnnCall("cudnnCreateTensorDescriptor", cd.CreateTensorDescriptor, uintptr(unsafe.Pointer(to))); err != nil {
		return err
	}
	return dnnCall("cudnnSetTensor4dDescriptorEx", cd.SetTensor4dDescriptorEx, *to, data, uintptr(s[0]), uintptr(s[1]), uintptr(s[2]),
		uintptr(s[3]), uintptr(strides[0]), uintptr(strides[1]), uintptr(strides[2]), uintptr(strides[3]))
}

// performance is cudnnConvolutionFwdAlgoPerf_t, which the gradients have, too.
type performance struct {
	algo, status  int32
	time          float32
	memory        uint64
	deterministic int32
	math          int32
	_             [3]int32
}

// choose asks cuDNN for its methods, from the fastest on. Those that give the same bits in every
// run come first.
func (p *plan) choose(l *dnn) error {
	x, w, y := p.operands[0].whole, p.operands[1].whole, p.operands[2].whole
	name, fn, args := "cudnnGetConvolutionForwardAlgorithm", cd.GetConvolutionForwardAlgorithm_v7, [4]uintptr{x, w, p.conv, y}
	switch p.key.kind {
	case driver.ConvForward:
	case driver.ConvBackwardData:
		name, fn, args = "cudnnGetConvolutionBackwardDataAlgorithm", cd.GetConvolutionBackwardDataAlgorithm_v7, [4]uintptr{w, y, p.conv, x}
	case driver.ConvBackwardFilter:
		name, fn, args = "cudnnGetConvolutionBackwardFilterAlgorithm", cd.GetConvolutionBackwardFilterAlgorithm_v7, [4]uintptr{x, y, p.conv, w}
	}
	found := make([]performance, 16)
	var n int32
	if err := dnnCall(name, fn, l.handle, args[0], args[1], args[2], args[3], uintptr(len(found)), uintptr(unsafe.Pointer(&n)),
		uintptr(unsafe.Pointer(&found[0]))); err != nil {
		return err
	}
	found = slices.DeleteFunc(found[:n], func(f performance) bool { return f.status != 0 })
	slices.SortStableFunc(found, func(a, b performance) int { return int(b.deterministic) - int(a.deterministic) })
	for _, f := range found {
		p.methods = append(p.methods, method{uintptr(f.algo), uintptr(f.math), int(f.memory)})
	}
	if len(p.methods) == 0 {
		return fmt.Errorf("cuDNN: %s: no method for %+v: %w", name, p.key.conv, driver.ErrUnsupported)
	}
	return nil
}
