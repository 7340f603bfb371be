package queue

import (
	"slices"

	"github.com/weft-ml/weft/internal/opkit/resource"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterNew(opdef.Def{
		Name: "Barrier", Doc: "Returns a handle to a barrier, which assembles elements from components that are " +
			"inserted separately under a key.",
		Out: []string{"handle: Ref(string)"},
		Attrs: []string{
			"component_types: list(type) >= 1", "shapes: list(shape) >= 0 = []", "capacity: int = -1",
			"container: string = ''", "shared_name: string = ''",
		},
		Stateful: true, Shape: resource.NamesShape,
	}, makeBarrier)
	handle := []string{"handle: Ref(string)"}
	for _, def := range []struct {
		opdef.Def
		new kernel.New
	}{
		{opdef.Def{
			Name: "BarrierInsertMany", Doc: "Inserts the rows of values as one component of the elements with the given keys.",
			In: append(handle, "keys: string", "values: T"), Attrs: []string{"T: type", "component_index: int"}, Shape: insertShape,
		}, newInsertMany},
		{opdef.Def{
			Name: "BarrierTakeMany",
			Doc: "Takes num_elements complete elements from a barrier, in the order in which " +
				"their keys were first inserted. Blocks until they are available. With " +
				"allow_small_batch a closed barrier returns fewer.",
			In:  append(handle, "num_elements: int32"),
			Out: []string{"indices: int64", "keys: string", "values: component_types"},
			Attrs: []string{
				"component_types: list(type) >= 1", "allow_small_batch: bool = false", "wait_for_incomplete: bool = false", "timeout_ms: int = -1",
			},
			Shape: opdef.UnknownShape,
		}, newTakeMany},
		{opdef.Def{
			Name: "BarrierClose", Doc: "Closes a barrier to new keys. With cancel_pending_enqueues incomplete " +
				"elements are also dropped.",
			In: handle, Attrs: []string{"cancel_pending_enqueues: bool = false"}, Shape: resource.ByNamesShape,
		}, newBarrierClose},
		{opdef.Def{
			Name: "BarrierReadySize", Doc: "Returns the number of complete elements in a barrier.",
			In: handle, Out: []string{"size: int32"}, Shape: resource.ByNamesShape,
		}, queryBarrier((*Barrier).readySize)},
		{opdef.Def{
			Name: "BarrierIncompleteSize", Doc: "Returns the number of incomplete elements in a barrier.",
			In: handle, Out: []string{"size: int32"}, Shape: resource.ByNamesShape,
		}, queryBarrier((*Barrier).incompleteSize)},
	} {
		kernel.RegisterNew(def.Def, def.new)
	}
}

// insertShape is the shape function of operations that take a vector of keys and one row for each
// key.
func insertShape(c *opdef.ShapeContext) error {
	if err := resource.CheckNames(c, 0); err != nil {
		return err
	}
	keys, err := opdef.WithRank(c.In[1], 1)
	if err != nil {
		return err
	}
	values, err := opdef.WithRankAtLeast(c.In[2], 1)
	if err == nil {
		_, err = opdef.MergeShapes(keys, shapefn.Of(values.Dim(0)))
	}
	return err
}

func makeBarrier(c *kernel.Construction) (kernel.Kernel, error) {
	types, components := c.Attrs.Types("component_types"), c.Attrs.Shapes("shapes")
	switch {
	case len(types) != len(components):
		return nil, status.InvalidArgumentf("All of the component shapes must be specified")
	case c.Attrs.Int("capacity") != -1:
		return nil, status.InvalidArgumentf("Barrier only accepts capacity=-1.  Feed the inputs to your Barrier through a queue " +
			"to enforce a limited capacity.")
	}
	components = slices.Clone(components)
	for i, s := range components {
		switch {
		case !s.RankKnown():
			components[i] = shapefn.Of() // TensorFlow treats it as a scalar
		case !shapefn.Full(s):
			return nil, status.InvalidArgumentf("Shape %v is not fully defined", s)
		}
	}
	return resource.Maker[*Barrier]{
		Create: func(_ *kernel.Context, name string) (*Barrier, error) {
			return newBarrier(name, types, components), nil
		},
		Verify: func(b *Barrier) error { return b.verify(types, components) },
	}.Kernel(c)
}

// verify compares an existing barrier with the attributes of a node.
func (b *Barrier) verify(types []tensor.DType, components []tensor.PartialShape) error {
	switch {
	case !slices.Equal(types, b.types):
		return status.InvalidArgumentf("Shared barrier '%s' has component types %s but requested component types were %s",
			b.name, opdef.JoinTypes(b.types), opdef.JoinTypes(types))
	case !slices.EqualFunc(components, b.shapes, tensor.PartialShape.Equal):
		return status.InvalidArgumentf("Shared barrier '%s' has component shapes %s but requested component shapes were %s",
			b.name, listShapes(b.shapes), listShapes(components))
	}
	return nil
}

func newInsertMany(c *kernel.Construction) (kernel.Kernel, error) {
	component, in := c.Attrs.Int("component_index"), c.Inputs
	return kernel.Func(func(ctx *kernel.Context) error {
		b, err := resource.Find[*Barrier](ctx, 0)
		if err != nil {
			return err
		}
		if component < 0 || component >= len(b.types) {
			return status.InvalidArgumentf("The component ID is out of range %d > num_components (= %d)", component, len(b.types))
		}
		if err := resource.CheckSignature(in, nil, []tensor.DType{in[0], tensor.String, b.types[component]}, nil); err != nil {
			return err
		}
		keys, values := ctx.Input(1), ctx.Input(2)
		if err := b.checkInsertion(keys, component, values); err != nil {
			return err
		}
		return b.insert(resource.Account(ctx), tensor.Values[string](keys), component, values)
	}), nil
}

func (b *Barrier) checkInsertion(keys *tensor.Tensor, component int, values *tensor.Tensor) error {
	n := keys.NumElements()
	switch {
	case n > 0 && values.NumElements() == 0:
		return status.InvalidArgumentf("Tensors with no elements are not supported %s: received shape %v", b.name, values.Shape())
	case n == 0:
		return nil
	case values.Rank() == 0 || values.Dim(0) != n:
		return status.InvalidArgumentf("%d keys for values of shape %v in barrier %s", n, values.Shape(), b.name)
	}
	if got := values.Shape()[1:]; !b.shapes[component].CompatibleWith(got) {
		return status.InvalidArgumentf("Shape mismatch in tuple component %d. Expected %v, got %v", 2+component, b.shapes[component], got)
	}
	return nil
}

func newTakeMany(c *kernel.Construction) (kernel.Kernel, error) {
	if c.Attrs.Int("timeout_ms") != -1 {
		return nil, status.InvalidArgumentf("Timeout not supported yet.")
	}
	small, in, out := c.Attrs.Bool("allow_small_batch"), c.Inputs, c.Outputs
	return kernel.AsyncFunc(func(ctx *kernel.Context, done func(error)) {
		b, n, err := takeArguments(ctx, in, out)
		if err != nil {
			done(err)
			return
		}
		b.take(ctx.Context(), n, small, func(elems []element, err error) {
			if err == nil {
				err = outputElements(ctx, elems, b.allTypes(), b.allShapes())
			}
			done(err)
		})
	}), nil
}

func takeArguments(ctx *kernel.Context, in, out []tensor.DType) (*Barrier, int, error) {
	b, err := resource.Find[*Barrier](ctx, 0)
	if err != nil {
		return nil, 0, err
	}
	num := ctx.Input(1)
	if num.Rank() != 0 {
		return nil, 0, status.InvalidArgumentf("num_elements must be a scalar.")
	}
	n := int(tensor.Value[int32](num))
	if n < 0 {
		return nil, 0, status.InvalidArgumentf("num_elements must not be negative, got %d", n)
	}
	return b, n, resource.CheckSignature(in, out, []tensor.DType{in[0], tensor.Int32}, b.allTypes())
}

// allTypes returns the dtypes of a taken element: index, key and components.
func (b *Barrier) allTypes() []tensor.DType {
	return append([]tensor.DType{tensor.Int64, tensor.String}, b.types...)
}

func (b *Barrier) allShapes() []tensor.PartialShape {
	return append([]tensor.PartialShape{shapefn.Of(), shapefn.Of()}, b.shapes...)
}

func newBarrierClose(c *kernel.Construction) (kernel.Kernel, error) {
	cancel := c.Attrs.Bool("cancel_pending_enqueues")
	return kernel.Func(func(ctx *kernel.Context) error {
		b, err := resource.Find[*Barrier](ctx, 0)
		if err != nil {
			return err
		}
		return b.close(cancel)
	}), nil
}

// queryBarrier returns the constructor of kernels that return a number of elements.
func queryBarrier(f func(*Barrier) int) kernel.New {
	return kernel.Stateless(func(ctx *kernel.Context) error {
		b, err := resource.Find[*Barrier](ctx, 0)
		if err == nil {
			ctx.SetOutput(0, tensor.Scalar(int32(f(b))))
		}
		return err
	})
}
