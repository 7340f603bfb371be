package kernel

import (
	"context"

	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Value is what an edge of a graph carries: a tensor, or a reference to a variable.
type Value struct {
	Tensor tensor.Tensor
	Ref    *Variable // not nil on reference edges, whose Tensor is not initialized
}

// Release ends the reference that the value holds and clears it.
func (v *Value) Release() {
	v.Tensor.Release()
	v.Ref = nil
}

// Context is one execution of a node. The executor fills it; it belongs to the kernel until Compute
// returns, or until done is called for an [Async] kernel.
type Context struct {
	Step   *Step
	Device *Device
	Node   string
	At     FrameIter
	Depth  int // how many function calls the node is nested in
	// what collects the statistics of the run, for functions that the node calls; nil if nobody
	// asked
	Stats any

	// Dead is set for kernels that run on dead inputs (they forward deadness across devices), and
	// may be set by a kernel to make its outputs dead.
	Dead bool

	inputs   []Value
	outputs  []Value
	outTypes []tensor.DType
}

// Bind gives the context the values of a node, for the executor: inputs that the context owns,
// empty places for the outputs, and the declared types of the outputs.
func (c *Context) Bind(inputs, outputs []Value, outTypes []tensor.DType) {
	c.inputs, c.outputs, c.outTypes = inputs, outputs, outTypes
}

// Context returns the step's context, which ends when the step is over or cancelled.
func (c *Context) Context() context.Context { return c.Step.Context }

// NumInputs returns the number of inputs.
func (c *Context) NumInputs() int { return len(c.inputs) }

// NumOutputs returns the number of outputs.
func (c *Context) NumOutputs() int { return len(c.outputs) }

// Input returns input i, borrowed. References have been resolved, except for inputs declared Ref.
func (c *Context) Input(i int) *tensor.Tensor { return &c.inputs[i].Tensor }

// InputRef returns the variable behind input i, which is declared Ref.
func (c *Context) InputRef(i int) *Variable { return c.inputs[i].Ref }

// OutputType returns the declared type of output i, without its reference mark.
func (c *Context) OutputType(i int) tensor.DType { return c.outTypes[i].Base() }

// Allocate makes output i, of its declared type and the given shape, and returns it to be filled:
// its elements are not cleared.
func (c *Context) Allocate(i int, shape tensor.Shape) (*tensor.Tensor, error) {
	t, err := tensor.Alloc(c.OutputType(i), shape)
	return c.allocated(i, t, err)
}

// AllocateLike is Allocate with the shape of an existing tensor, which the output shares.
func (c *Context) AllocateLike(i int, like *tensor.Tensor) (*tensor.Tensor, error) {
	t, err := tensor.AllocShared(c.OutputType(i), like.Shape())
	return c.allocated(i, t, err)
}

func (c *Context) allocated(i int, t tensor.Tensor, err error) (*tensor.Tensor, error) {
	if err != nil {
		return nil, status.From(err).Annotate(" on %s by allocator cpu", c.Device.Name)
	}
	c.outputs[i].Tensor = t
	return &c.outputs[i].Tensor, nil
}

// AllocateZeros is Allocate with cleared elements.
func (c *Context) AllocateZeros(i int, shape tensor.Shape) (*tensor.Tensor, error) {
	t, err := c.Allocate(i, shape)
	if err == nil {
		clear(t.Bytes())
	}
	return t, err
}

// Forward makes output i of the shape of input in, in place where it can: if the element types have
// one size and nobody else holds the input's elements, the output takes them over, values and all;
// otherwise new elements are allocated, not cleared. Take the values of the input before the call:
// the input is empty afterwards if it was taken over.
func (c *Context) Forward(in, i int) (*tensor.Tensor, error) {
	src := &c.inputs[in].Tensor
	dtype := c.OutputType(i)
	if src.Exclusive() && dtype.Size() == src.DType().Size() && dtype.Size() > 0 {
		out, err := src.WithDType(dtype)
		if err == nil {
			*src = tensor.Tensor{}
			c.outputs[i].Tensor = out
			return &c.outputs[i].Tensor, nil
		}
	}
	return c.AllocateLike(i, src)
}

// ForwardAny is Forward from the first of the inputs that can be taken over and has the given
// shape; the output has that shape in any case.
func (c *Context) ForwardAny(i int, shape tensor.Shape, ins ...int) (*tensor.Tensor, error) {
	for _, in := range ins {
		if src := &c.inputs[in].Tensor; src.Exclusive() && src.DType() == c.OutputType(i) && src.Shape().Equal(shape) {
			return c.Forward(in, i)
		}
	}
	return c.Allocate(i, shape)
}

// SetOutput makes t output i and takes its reference.
func (c *Context) SetOutput(i int, t tensor.Tensor) { c.outputs[i].Tensor = t }

// PassInput makes input in, with another shape if one is given, output i without copying elements.
func (c *Context) PassInput(in, i int, shape ...int64) error {
	t := c.inputs[in].Tensor.Retain()
	if shape != nil {
		var err error
		if t, err = t.WithShape(shape); err != nil {
			c.inputs[in].Tensor.Release()
			return err
		}
	}
	c.outputs[i].Tensor = t
	return nil
}

// TakeInput returns input i with its reference: the input is empty afterwards.
func (c *Context) TakeInput(i int) tensor.Tensor {
	t := c.inputs[i].Tensor
	c.inputs[i].Tensor = tensor.Tensor{}
	return t
}

// SetOutputRef makes a reference to v output i.
func (c *Context) SetOutputRef(i int, v *Variable) { c.outputs[i] = Value{Ref: v} }
