// Package listops holds what steps keep sequences of tensors in: tensor arrays and stacks, which
// loops write to and read from and which go with their step, and tensor lists and tensor maps,
// which are values that pass along edges.
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

// keep adds a resource to the step under a key of two strings and gives the way to it as output 0.
func keep(ctx *kernel.Context, form tensor.DType, container, name string, r kernel.Resource) error {
	err := kernel.CreateResource(ctx.Step.Resources, "", container+name, r)
	if err == nil {
		giveHandle(ctx, form, container, name, r)
	}
	return err
}

// giveHandle makes output 0 the way to a resource of the step, in the form that the type of the
// output asks for: a handle, two strings, or a reference to two strings.
func giveHandle(ctx *kernel.Context, form tensor.DType, container, name string, r kernel.Resource) {
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

// find returns the resource of the step behind input 0, in any of these forms. what names it in
// errors.
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

// names returns the two strings that are input 0, as a value or behind a reference.
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

// numbered returns a name that no other node or execution has.
func numbered(name string, n int64) string { return name + "_" + strconv.FormatInt(n, 10) }

// checkHandle is what the rules of operations check of their first input. It is declared a vector
// of two in either form.
func checkHandle(c *opdef.ShapeContext) error {
	handle, err := opdef.WithRank(c.In[0], 1)
	if err == nil {
		err = shapefn.CheckDim(handle.Dim(0), 2)
	}
	return err
}

// handleShape is the rule of operations that give a handle, which is declared a vector of two in
// either form.
func handleShape(c *opdef.ShapeContext) error {
	c.Out[0] = shapefn.Of(2)
	return nil
}
