package kernel

import (
	"context"

	gpu "github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/internal/sys/bulk"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Value is the value of an edge of a graph: a tensor, or a reference to a variable.
type Value struct {
	Tensor tensor.Tensor
	Ref    *Variable // not nil on reference edges, whose Tensor is not initialized
}

// Release releases the tensor and clears the value.
func (v *Value) Release() {
	v.Tensor.Release()
	v.Ref = nil
}

// Context is one execution of a node. The executor fills it. It belongs to the kernel until Compute
// returns, or until an [Async] kernel calls done.
type Context struct {
	Step   *Step
	Device *Device
	Node   string // name of the node
	At     FrameIter
	Depth  int // nesting depth of function calls
	// collector of the run's statistics, for functions that the node calls; nil for none
	Stats any

	// Dead is set for kernels that run on dead inputs: they forward deadness across devices. A
	// kernel may set it to make its outputs dead.
	Dead bool

	inputs   []Value
	outputs  []Value
	outTypes []tensor.DType

	gpu *gpu.Device // in whose memory the kernel computes; nil for memory of the host
	// outputs of a kernel on a GPU that are in the memory of the host; nil for none
	hostOuts []bool
}

// Bind sets the values of a node. It is for the executor. The context owns the inputs; the outputs
// are empty, and outTypes are their declared types.
func (c *Context) Bind(inputs, outputs []Value, outTypes []tensor.DType) {
	c.inputs, c.outputs, c.outTypes = inputs, outputs, outTypes
}

// Context returns the step's context, which ends when the step ends or is cancelled.
func (c *Context) Context() context.Context { return c.Step.Context }

// NumInputs returns the number of inputs.
func (c *Context) NumInputs() int { return len(c.inputs) }

// NumOutputs returns the number of outputs.
func (c *Context) NumOutputs() int { return len(c.outputs) }

// Input returns input i, borrowed. References have been resolved, except for inputs declared Ref.
func (c *Context) Input(i int) *tensor.Tensor { return &c.inputs[i].Tensor }

// OutputValue returns the tensor of output i, which has none before it is set.
func (c *Context) OutputValue(i int) *tensor.Tensor { return &c.outputs[i].Tensor }

// OutputRef returns the variable to which output i is a reference, or nil.
func (c *Context) OutputRef(i int) *Variable { return c.outputs[i].Ref }

// InputRef returns the variable behind input i, which is declared Ref.
func (c *Context) InputRef(i int) *Variable { return c.inputs[i].Ref }

// OutputType returns the declared type of output i, without its reference mark.
func (c *Context) OutputType(i int) tensor.DType { return c.outTypes[i].Base() }

// Allocate allocates output i with its declared type and the given shape, and returns it. The
// elements are not cleared.
func (c *Context) Allocate(i int, shape tensor.Shape) (*tensor.Tensor, error) {
	if c.allocatesOnGPU(i) {
		return c.allocateOnGPU(i, shape)
	}
	if c.Step != nil && c.Step.Account != nil {
		if err := c.Step.afford(c.OutputType(i), shape); err != nil {
			return nil, err
		}
	}
	t, err := tensor.Alloc(c.OutputType(i), shape)
	return c.allocated(i, t, err)
}

// AllocateLike is Allocate with the shape of an existing tensor. The two share the shape.
func (c *Context) AllocateLike(i int, like *tensor.Tensor) (*tensor.Tensor, error) {
	if c.allocatesOnGPU(i) {
		return c.allocateOnGPU(i, like.Shape())
	}
	if c.Step != nil && c.Step.Account != nil {
		if err := c.Step.afford(c.OutputType(i), like.Shape()); err != nil {
			return nil, err
		}
	}
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
	switch {
	case err != nil:
	case t.OnDevice():
		err = c.gpu.Fill(t, 0)
	default:
		bulk.Clear(t.Bytes())
	}
	return t, err
}

// Forward sets output i to a tensor with the shape of input in. If the sizes of the element types
// are equal and the caller is the only holder of the input, the output takes over its memory with
// its values, and the input is empty afterwards. Otherwise the output is newly allocated and not
// cleared. Read the values of the input before the call.
func (c *Context) Forward(in, i int) (*tensor.Tensor, error) {
	src := &c.inputs[in].Tensor
	dtype := c.OutputType(i)
	if src.Exclusive() && dtype.Size() == src.DType().Size() && dtype.Size() > 0 && c.fits(src, i) {
		out, err := src.WithDType(dtype)
		if err == nil {
			*src = tensor.Tensor{}
			c.outputs[i].Tensor = out
			return &c.outputs[i].Tensor, nil
		}
	}
	return c.AllocateLike(i, src)
}

// ForwardAny is Forward with the first of the inputs that can be taken over and has the given
// shape. The output always has that shape.
func (c *Context) ForwardAny(i int, shape tensor.Shape, ins ...int) (*tensor.Tensor, error) {
	for _, in := range ins {
		if src := &c.inputs[in].Tensor; src.Exclusive() && src.DType() == c.OutputType(i) && src.Shape().Equal(shape) && c.fits(src, i) {
			return c.Forward(in, i)
		}
	}
	return c.Allocate(i, shape)
}

// SetOutput sets output i to t and takes over its reference.
func (c *Context) SetOutput(i int, t tensor.Tensor) { c.outputs[i].Tensor = t }

// PassInput sets output i to input in without copying elements. If a shape is given, the output has
// that shape.
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

// TakeInput returns input i with its reference. The input is empty afterwards.
func (c *Context) TakeInput(i int) tensor.Tensor {
	t := c.inputs[i].Tensor
	c.inputs[i].Tensor = tensor.Tensor{}
	return t
}

// SetOutputRef sets output i to a reference to v.
func (c *Context) SetOutputRef(i int, v *Variable) { c.outputs[i] = Value{Ref: v} }
