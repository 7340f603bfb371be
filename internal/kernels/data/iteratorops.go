package data

import (
	"errors"

	"github.com/weft-ml/weft/internal/opkit/resource"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	for _, name := range []string{"Iterator", "IteratorV2"} {
		kernel.RegisterNew(opdef.Def{
			Name: name, Doc: "Creates an iterator resource, which MakeIterator initializes.",
			Out: []string{"handle: resource"}, Attrs: withSpec("shared_name: string", "container: string"),
			Stateful: true, Shape: opdef.ScalarShape,
		}, makeIterator)
	}
	for name, out := range map[string][]string{
		"AnonymousIterator": {"handle: resource"}, "AnonymousIteratorV2": {"handle: resource", "deleter: variant"}, "AnonymousIteratorV3": {"handle: resource"},
	} {
		kernel.RegisterNew(opdef.Def{
			Name: name, Doc: "Creates an anonymous iterator resource, which exists as long as its handle.",
			Out: out, Attrs: withSpec(), Stateful: true, Shape: opdef.ScalarShape,
		}, newAnonymous(func(n *node, _ *kernel.Context) (kernel.Resource, error) {
			return newIterator(n.spec()), nil
		}))
	}
	kernel.RegisterNew(opdef.Def{
		Name: "MakeIterator", Doc: "Initializes an iterator with a dataset.",
		In: []string{"dataset: variant", "iterator: resource"}, Stateful: true,
	}, onIterator(1, initialize))
	for name, doc := range map[string]string{
		"IteratorGetNext":     "Returns the next element of an iterator. It blocks until the element is available.",
		"IteratorGetNextSync": "Returns the next element of an iterator, like IteratorGetNext.",
	} {
		kernel.RegisterNew(opdef.Def{
			Name: name, Doc: doc, In: []string{"iterator: resource"}, Out: []string{"components: output_types"},
			Attrs: withSpec(), Stateful: true, Shape: elementShape,
		}, onIterator(0, getNext))
	}
	kernel.RegisterNew(opdef.Def{
		Name: "SerializeIterator", Doc: "Returns the serialized state of an iterator, for DeserializeIterator.",
		In: []string{"resource_handle: resource"}, Out: []string{"serialized: variant"},
		Attrs: []string{"external_state_policy: int = 0"}, Stateful: true, Shape: vectorShape,
	}, onIterator(0, serialize))
	kernel.RegisterNew(opdef.Def{
		Name: "DeserializeIterator", Doc: "Restores an iterator from the state that SerializeIterator returned.",
		In: []string{"resource_handle: resource", "serialized: variant"}, Stateful: true,
	}, onIterator(0, deserialize))
}

// elementShape is the shape function of operations that return an element.
func elementShape(c *opdef.ShapeContext) error {
	shapes := c.Attrs.Shapes("output_shapes")
	if len(shapes) != len(c.Out) {
		return status.InvalidArgumentf("`output_shapes` must be the same length as `output_types` (%d vs. %d)", len(shapes), len(c.Out))
	}
	copy(c.Out, shapes)
	return nil
}

func vectorShape(c *opdef.ShapeContext) error {
	c.SetAll(tensor.UnknownDims(1))
	return nil
}

func makeIterator(c *kernel.Construction) (kernel.Kernel, error) {
	s := spec{c.Attrs.Types("output_types"), c.Attrs.Shapes("output_shapes")}
	return resource.Maker[*Iterator]{
		Create: func(*kernel.Context, string) (*Iterator, error) { return newIterator(s), nil },
		Verify: func(it *Iterator) error { return s.check(&it.spec) },
		ByNode: true,
	}.Kernel(c)
}

// onIterator returns the constructor of kernels that use the iterator whose handle is input i.
func onIterator(i int, f func(*kernel.Construction, *kernel.Context, *Iterator) error) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		return kernel.AsyncFunc(func(ctx *kernel.Context, done func(error)) {
			it, err := resource.Find[*Iterator](ctx, i)
			if err != nil {
				done(err)
				return
			}
			it.use(ctx, done, func() error { return f(c, ctx, it) })
		}), nil
	}
}

func initialize(_ *kernel.Construction, ctx *kernel.Context, it *Iterator) error {
	return it.reset(ctx, ctx.Input(0))
}

func getNext(c *kernel.Construction, ctx *kernel.Context, it *Iterator) error {
	e, err := it.next(ctx, &spec{c.Outputs, c.Attrs.Shapes("output_shapes")})
	if err != nil {
		return endOfSequence(err)
	}
	for i := range e {
		ctx.SetOutput(i, e[i])
	}
	return nil
}

// endOfSequence converts errEnd to the error that clients expect.
func endOfSequence(err error) error {
	if errors.Is(err, errEnd) {
		return status.OutOfRangef("End of sequence")
	}
	return err
}

func serialize(c *kernel.Construction, ctx *kernel.Context, it *Iterator) error {
	v, err := it.save(ctx, c.Attrs.Int("external_state_policy") == failOnState)
	if err == nil {
		ctx.SetOutput(0, tensor.Vector(v))
	}
	return err
}

func deserialize(c *kernel.Construction, ctx *kernel.Context, it *Iterator) error {
	in := ctx.Input(1)
	if in.NumElements() != 1 {
		return status.InvalidArgumentf("serialized must have one element, has shape %v", in.Shape())
	}
	if err := it.restore(ctx, c.Functions, tensor.Values[tensor.VariantValue](in)[0]); err != nil {
		return status.Errorf(status.CodeOf(err), "Failed to restore dataset iterator from checkpoint: %s. Make sure the dataset "+
			"definition has not changed between the process that saved the checkpoint and the process that is restoring it.", err)
	}
	return nil
}
