// Package state implements variables and their updates: reference variables, accessed through
// reference edges; resource variables, accessed through handles; assignments, scatters and
// optimizer updates.
//
// Both kinds of variable are a kernel.Variable, so each update is written once. A variable shares
// its value with readers. An update works in place if no other reference to the value exists, and
// on a copy otherwise.
package state

import (
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// varHash is the type hash in TensorFlow 2.21's variable handles.
const varHash = 17454915466513971685

// handle returns the resource handle that is input i.
func handle(ctx *kernel.Context, i int) (*tensor.Handle, error) {
	t := ctx.Input(i)
	if t.NumElements() != 1 {
		return nil, status.InvalidArgumentf("resource input must be a scalar, has shape %v", t.Shape())
	}
	h := tensor.Value[*tensor.Handle](t)
	if h == nil {
		return nil, status.InvalidArgumentf("resource input is not a handle")
	}
	return h, checkDevice(ctx, h)
}

func checkDevice(ctx *kernel.Context, h *tensor.Handle) error {
	if h.Device != ctx.Device.Name {
		return status.InvalidArgumentf("Trying to access resource %s located in device %s from device %s",
			h.Name, h.Device, ctx.Device.Name)
	}
	return nil
}

// lookup returns the variable behind the handle that is input i. It returns NotFound if the
// variable does not exist.
func lookup(ctx *kernel.Context, i int) (*kernel.Variable, error) {
	h, err := handle(ctx, i)
	if err != nil {
		return nil, err
	}
	return find(ctx, h)
}

func find(ctx *kernel.Context, h *tensor.Handle) (*kernel.Variable, error) {
	if v, ok := h.Resource.(*kernel.Variable); ok {
		return v, nil
	}
	var none *kernel.Variable
	if h.TypeName != "" && h.TypeName != none.TypeName() {
		return nil, status.InvalidArgumentf("Trying to access a handle's resource using the wrong type. The handle points to a "+
			"resource (name '%s') of type '%s' (hash code %d) but you are trying to access the resource as type '%s' (hash code %d)",
			h.Name, h.TypeName, h.HashCode, none.TypeName(), uint64(varHash))
	}
	return kernel.LookupResource[*kernel.Variable](ctx.Device.Resources, h.Container, h.Name)
}

// elemShape returns the inferred shape behind a handle, after checking the dtype if it is known.
func elemShape(elems []tensor.HandleElem, dtype tensor.DType) (tensor.PartialShape, error) {
	if len(elems) == 0 {
		return tensor.PartialShape{}, nil
	}
	if elems[0].DType != dtype {
		return tensor.PartialShape{}, status.InvalidArgumentf(
			"Trying to read variable with wrong dtype. Expected %v got %v", elems[0].DType, dtype)
	}
	return elems[0].Shape, nil
}

// inputShape returns the inferred shape of input i, or of the variable it refers to by reference or
// handle. attr is the attribute with the dtype.
func inputShape(c *opdef.ShapeContext, i int, attr string) (tensor.PartialShape, error) {
	if i < len(c.Op.Inputs) && c.Op.Inputs[i].DType == tensor.Resource {
		return elemShape(c.InHandles[i], c.Attrs.Type(attr))
	}
	return c.In[i], nil
}

// target returns the variable that an operation updates: input 0, by reference or by handle.
func target(ctx *kernel.Context) (*kernel.Variable, error) {
	if v := ctx.InputRef(0); v != nil {
		return v, nil
	}
	return lookup(ctx, 0)
}

// change calls f with the value of the operation's variable, which f may modify. It forwards the
// reference if the operation has an output.
func change(ctx *kernel.Context, f func(t *tensor.Tensor) error) error {
	v, err := target(ctx)
	if err != nil {
		return err
	}
	err = v.Update(func(t *tensor.Tensor) error {
		if !t.Initialized() {
			return status.FailedPreconditionf("Attempting to use uninitialized value")
		}
		return f(t)
	})
	if err == nil && ctx.NumOutputs() > 0 {
		ctx.SetOutputRef(0, v)
	}
	return err
}
