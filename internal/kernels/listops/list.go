// Package listops holds the operations on sequences of tensors. Tensor arrays and stacks are
// resources of a step, which loops write and read. Tensor lists and tensor maps are immutable
// values of variants.
package listops

import (
	"strconv"

	"github.com/weft-ml/weft/internal/opkit/resource"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// createResource adds a resource to the step, with container and name as its key, and sets output 0
// to its handle.
func createResource(ctx *kernel.Context, form tensor.DType, container, name string, r kernel.Resource) error {
	err := kernel.CreateResource(ctx.Step.Resources, "", container+name, r)
	if err == nil {
		setHandle(ctx, form, container, name, r)
	}
	return err
}

// setHandle sets output 0 to the handle of a resource of the step. The form of the handle follows
// the output type: a resource handle, two strings, or a reference to two strings.
func setHandle(ctx *kernel.Context, form tensor.DType, container, name string, r kernel.Resource) {
	switch {
	case form == tensor.Resource:
		h := resource.Place{Container: resource.Step, Name: container + name}.Handle(ctx.Device, r.TypeName())
		h.Resource = r
		ctx.SetOutput(0, tensor.Scalar(h))
	case form.IsRef():
		names := kernel.NewVariable()
		names.Store(tensor.Vector(container, name))
		ctx.SetOutputRef(0, names)
	default:
		ctx.SetOutput(0, tensor.Vector(container, name))
	}
}

// find returns the resource of the step whose handle is input 0, in any form. what starts the error
// for an invalid handle.
func find[T kernel.Resource](ctx *kernel.Context, what string) (T, error) {
	if ctx.InputRef(0) == nil && ctx.Input(0).DType() == tensor.Resource {
		return resource.Find[T](ctx, 0)
	}
	container, name, err := names(ctx, what)
	if err != nil {
		var none T
		return none, err
	}
	return kernel.LookupResource[T](ctx.Step.Resources, "", container+name)
}

// names returns the two strings of input 0, a value or a reference.
func names(ctx *kernel.Context, what string) (container, name string, err error) {
	t := ctx.Input(0)
	if v := ctx.InputRef(0); v != nil {
		value := v.Load()
		t = &value
	}
	if t.NumElements() != 2 || t.DType() != tensor.String {
		return "", "", status.InvalidArgumentf("%s, but had shape: %v", what, t.Shape())
	}
	s := tensor.Values[string](t)
	return s[0], s[1], nil
}

// uniqueName returns name with the suffix n, a process-wide counter.
func uniqueName(name string, n int64) string { return name + "_" + strconv.FormatInt(n, 10) }

// checkHandle is the check of handles in shape functions. All forms of handles are declared as
// vectors of two elements.
func checkHandle(c *opdef.ShapeContext) error {
	handle, err := opdef.WithRank(c.In[0], 1)
	if err == nil {
		err = shapefn.CheckDim(handle.Dim(0), 2)
	}
	return err
}

// handleShape is the shape function of operations that return a handle, which is declared as a
// vector of two elements in every form.
func handleShape(c *opdef.ShapeContext) error {
	c.Out[0] = shapefn.Of(2)
	return nil
}
