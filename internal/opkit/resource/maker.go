package resource

import (
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/tensor"
)

// Maker implements the operation that creates a kind of resource. If a resource with the name
// exists, the operation uses it. The output is a handle, or a reference to container and name.
type Maker[T kernel.Resource] struct {
	Create func(ctx *kernel.Context, name string) (T, error)
	Verify func(T) error // compares a resource with the attributes of the node; may be nil
	ByNode bool          // without a shared name, the resource has the name of the node
	Elems  []tensor.HandleElem
}

// maker is the kernel of a Maker.
type maker[T kernel.Resource] struct {
	Maker[T]
	place     Place
	resources *kernel.Resources
	handle    tensor.Tensor    // of a resource output
	names     *kernel.Variable // of a reference output, otherwise nil
}

// Kernel returns the kernel of a node.
func (m Maker[T]) Kernel(c *kernel.Construction) (kernel.Kernel, error) {
	p, err := PlaceOf(c, m.ByNode)
	if err != nil {
		return nil, err
	}
	k := &maker[T]{Maker: m, place: p, resources: c.Device.Resources}
	if c.Outputs[0].IsRef() {
		k.names = kernel.NewVariable()
		k.names.Store(tensor.Vector(p.Container, p.Name))
		return k, nil
	}
	var none T
	k.handle = tensor.Scalar(p.Handle(c.Device, none.TypeName(), m.Elems...))
	return k, nil
}

// Compute implements kernel.Kernel.
func (k *maker[T]) Compute(ctx *kernel.Context) error {
	r, err := kernel.LookupOrCreateResource(k.resources, k.place.Container, k.place.Name,
		func() (T, error) { return k.Create(ctx, k.place.Name) })
	if err != nil {
		return err
	}
	if k.Verify != nil {
		if err := k.Verify(r); err != nil {
			return err
		}
	}
	if k.names != nil {
		ctx.SetOutputRef(0, k.names)
	} else {
		ctx.SetOutput(0, k.handle.Retain())
	}
	return nil
}

// Close implements kernel.Closer. It deletes a private resource, which may have been deleted with
// its container already.
func (k *maker[T]) Close() {
	if k.place.Private {
		var none T
		_ = k.resources.DeleteResource(k.place.Container, none.TypeName(), k.place.Name)
	}
}
