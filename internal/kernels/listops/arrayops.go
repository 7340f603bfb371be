package listops

import (
	"strings"
	"sync/atomic"

	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/opkit/resource"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Containers of arrays among the resources of a step. String handles contain them.
const (
	arrays = "_tensor_arrays"
	grads  = "_tensor_array_grads"
)

// arrayHandle is the start of the error for an invalid handle.
const arrayHandle = "Tensor array handle must be 2-element vector"

// versions lists the three versions of the array operations: their suffix and the type of their
// handles.
var versions = []struct{ suffix, handle string }{{"", "Ref(string)"}, {"V2", "string"}, {"V3", "resource"}}

// registerVersions registers an array operation in all versions. def has the inputs after the
// handle and the shape function of V3. The rule of V2 has no element shapes, and the first version
// has no rule.
func registerVersions(def opdef.Def, impl kernel.New) {
	name, in, rule := def.Name, def.In, def.Shape
	for v, version := range versions {
		def.Name = name + version.suffix
		def.In = append([]string{"handle: " + version.handle}, in...)
		def.Stateful = v == 2
		switch v {
		case 0:
			def.Shape = opdef.UnknownShape
		case 1:
			def.Shape = withoutElements(rule)
		case 2:
			def.Shape = rule
		}
		kernel.RegisterNew(def, impl)
	}
}

// withoutElements returns the rule for handles without element shapes.
func withoutElements(rule opdef.ShapeFn) opdef.ShapeFn {
	return func(c *opdef.ShapeContext) error {
		c.InHandles = membudget.Make[[]tensor.HandleElem](len(c.In))
		return rule(c)
	}
}

// arrayRule returns a shape function that checks the handle and the ranks of further inputs, where
// -1 means any rank, and then calls rest.
func arrayRule(rest opdef.ShapeFn, ranks ...int) opdef.ShapeFn {
	return func(c *opdef.ShapeContext) error {
		if err := checkHandle(c); err != nil {
			return err
		}
		for i, rank := range ranks {
			if rank < 0 {
				continue
			}
			if _, err := opdef.WithRank(c.In[1+i], rank); err != nil {
				return err
			}
		}
		return rest(c)
	}
}

// elemOf returns the known part of an array's element shape. ok is false if the handle has none.
func elemOf(c *opdef.ShapeContext) (tensor.PartialShape, bool) {
	if elems := c.InHandles[0]; len(elems) > 0 {
		return elems[0].Shape, true
	}
	return tensor.PartialShape{}, false
}

func init() {
	registerArray("TensorArray", "Ref(string)", nil, opdef.UnknownShape,
		"dtype: type", "dynamic_size: bool = false", "clear_after_read: bool = true", "tensor_array_name: string = ''",
		"element_shape: shape = <unknown>")
	registerArray("TensorArrayV2", "string", nil, arrayHandleShape,
		"dtype: type", "element_shape: shape = <unknown>", "dynamic_size: bool = false", "clear_after_read: bool = true",
		"tensor_array_name: string = ''")
	registerArray("TensorArrayV3", "resource", []string{"flow: float"}, arrayShape,
		"dtype: type", "element_shape: shape = <unknown>", "dynamic_size: bool = false", "clear_after_read: bool = true",
		"identical_element_shapes: bool = false", "tensor_array_name: string = ''")
	registerGrad("TensorArrayGrad", "string", "Ref(string)", nil, nil, opdef.UnknownShape)
	registerGrad("TensorArrayGradV2", "string", "string", nil, nil, arrayRule(arrayHandleShape))
	flow := []string{"flow_out: float"}
	registerGrad("TensorArrayGradV3", "resource", "resource", nil, flow, arrayRule(gradShape))
	registerGrad("TensorArrayGradWithShape", "resource", "resource", []string{"shape_to_prepend: int32"}, flow, arrayRule(longerGradShape))
	registerVersions(opdef.Def{
		Name: "TensorArraySize", Doc: "Returns the number of elements of a tensor array.",
		In: []string{"flow_in: float"}, Out: []string{"size: int32"}, Shape: arrayRule(opdef.ScalarShape),
	}, onArray(sizeOf))
	registerVersions(opdef.Def{
		Name: "TensorArrayClose", Doc: "Closes a tensor array. Later operations on it fail.",
		Shape: arrayRule(opdef.UnknownShape),
	}, onArray(func(_ *kernel.Context, a *Array) error {
		a.Close()
		return nil
	}))
}

func registerArray(name, handle string, flow []string, rule opdef.ShapeFn, attrs ...string) {
	kernel.RegisterNew(opdef.Def{
		Name: name, Doc: "Creates a tensor array of the given size for the current step.",
		In: []string{"size: int32"}, Out: append([]string{"handle: " + handle}, flow...), Attrs: attrs, Stateful: true, Shape: rule,
	}, newArray)
}

func registerGrad(name, handle, grad string, in, flow []string, rule opdef.ShapeFn) {
	kernel.RegisterNew(opdef.Def{
		Name: name, Doc: "Creates the tensor array for the gradients of a tensor array. There is one per source.",
		In:  append([]string{"handle: " + handle, "flow_in: float"}, in...),
		Out: append([]string{"grad_handle: " + grad}, flow...), Attrs: []string{"source: string"}, Stateful: true, Shape: rule,
	}, newGrad)
}

func arrayHandleShape(c *opdef.ShapeContext) error {
	c.Out[0] = shapefn.Of(2)
	if c.Op.Inputs[0].Name == "size" {
		_, err := opdef.WithRank(c.In[0], 0)
		return err
	}
	return nil
}

func arrayShape(c *opdef.ShapeContext) error {
	elem := c.Attrs.Shape("element_shape")
	c.Out[1] = shapefn.Of()
	if _, full := elem.Full(); full || c.Attrs.Bool("identical_element_shapes") {
		c.OutHandles[0] = []tensor.HandleElem{{DType: c.Attrs.Type("dtype"), Shape: elem}}
	}
	return arrayHandleShape(c)
}

func gradShape(c *opdef.ShapeContext) error {
	c.Out[0], c.Out[1] = shapefn.Of(2), shapefn.Of()
	c.OutHandles[0] = c.InHandles[0]
	return nil
}

func longerGradShape(c *opdef.ShapeContext) error {
	c.Out[0], c.Out[1] = shapefn.Of(2), shapefn.Of()
	elem, ok := elemOf(c)
	if !ok {
		return nil
	}
	front := shapefn.Shape{}
	if prepend := c.In[2]; prepend.Rank() == 1 && prepend.Dim(0) >= 0 {
		front = tensor.UnknownDims(int(prepend.Dim(0)))
	}
	c.OutHandles[0] = []tensor.HandleElem{{DType: c.InHandles[0][0].DType, Shape: shapefn.Concat(front, elem)}}
	return nil
}

// arrayCount is the number of arrays created in this process.
var arrayCount atomic.Int64

func newArray(c *kernel.Construction) (kernel.Kernel, error) {
	base := c.Attrs.String("tensor_array_name")
	if base == "" {
		base = c.Node
	}
	dtype, elem := c.Attrs.Type("dtype"), c.Attrs.Shape("element_shape")
	form := c.Outputs[0]
	dynamic, once, same := c.Attrs.Bool("dynamic_size"), c.Attrs.Bool("clear_after_read"), c.Attrs.Bool("identical_element_shapes")
	return kernel.Func(func(ctx *kernel.Context) error {
		size := ctx.Input(0)
		if size.Rank() != 0 {
			return status.InvalidArgumentf("TensorArray size must be scalar, but had shape: %v", size.Shape())
		}
		n := tensor.Value[int32](size)
		if n < 0 {
			return status.InvalidArgumentf("Size should be >= 0.")
		}
		a := &Array{
			name: uniqueName(base, arrayCount.Add(1)-1), dtype: dtype, once: once, same: same,
			cells: newCells(int(n)), dynamic: dynamic, elem: elem, marked: -1,
		}
		if ctx.NumOutputs() == 2 {
			ctx.SetOutput(1, tensor.Scalar[float32](0))
		}
		return createResource(ctx, form, arrays, a.name, a)
	}), nil
}

func newGrad(c *kernel.Construction) (kernel.Kernel, error) {
	source, form := c.Attrs.String("source"), c.Outputs[0]
	return kernel.Func(func(ctx *kernel.Context) error {
		name, err := arrayName(ctx)
		if err != nil {
			return err
		}
		of, err := kernel.LookupResource[*Array](ctx.Step.Resources, "", arrays+name)
		if err != nil {
			return err
		}
		var prepend tensor.Shape
		if ctx.NumInputs() > 2 {
			if prepend, err = intarg.Shape(intarg.Values(ctx.Input(2))); err != nil {
				return err
			}
			prepend = append(tensor.Shape{}, prepend...)
		}
		name += "@" + source
		grad, err := kernel.LookupOrCreateResource(ctx.Step.Resources, "", grads+name,
			func() (*Array, error) { return of.gradient(name, prepend) })
		if err != nil {
			return err
		}
		setHandle(ctx, form, grads, name, grad)
		if ctx.NumOutputs() == 2 {
			ctx.SetOutput(1, tensor.Scalar[float32](0))
		}
		return nil
	}), nil
}

// arrayName returns the name of the array in input 0, which must not hold gradients.
func arrayName(ctx *kernel.Context) (string, error) {
	if ctx.Input(0).DType() == tensor.Resource {
		h, err := resource.Handle(ctx, 0)
		if err != nil {
			return "", err
		}
		name, ok := strings.CutPrefix(h.Name, arrays)
		if !ok {
			return "", status.InvalidArgumentf("Wrong input container. %s", h.Name)
		}
		return name, nil
	}
	container, name, err := names(ctx, arrayHandle)
	if err == nil && container != arrays {
		err = status.InvalidArgumentf("Input container should be '_tensor_arrays',  but received '%s'", container)
	}
	return name, err
}

// onArray returns the constructor of a kernel that calls f with the array in input 0.
func onArray(f func(*kernel.Context, *Array) error) kernel.New {
	return kernel.Stateless(func(ctx *kernel.Context) error {
		a, err := find[*Array](ctx, arrayHandle)
		if err != nil {
			return err
		}
		return f(ctx, a)
	})
}

func sizeOf(ctx *kernel.Context, a *Array) error {
	n, _, err := a.size()
	if err == nil {
		ctx.SetOutput(0, tensor.Scalar(int32(n)))
	}
	return err
}
