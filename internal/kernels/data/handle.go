package data

import (
	"runtime"

	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/internal/opkit/protomem"
	"github.com/weft-ml/weft/internal/opkit/resource"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/proto/pbconv"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterFunc(opdef.Def{
		Name: "IteratorToStringHandle", Doc: "Returns a string handle for an iterator.",
		In: []string{"resource_handle: resource"}, Out: []string{"string_handle: string"}, Stateful: true, Shape: opdef.ScalarShape,
	}, toStringHandle[*Iterator])
	for _, name := range []string{"IteratorFromStringHandle", "IteratorFromStringHandleV2"} {
		kernel.RegisterNew(opdef.Def{
			Name: name, Doc: "Returns the iterator of a string handle from IteratorToStringHandle.",
			In: []string{"string_handle: string"}, Out: []string{"resource_handle: resource"},
			Attrs:    []string{"output_types: list(type) >= 0 = []", "output_shapes: list(shape) >= 0 = []"},
			Stateful: true, Shape: opdef.ScalarShape,
		}, newFromStringHandle[*Iterator])
	}
	for _, name := range []string{"IteratorGetDevice", "ExperimentalIteratorGetDevice"} {
		kernel.RegisterFunc(opdef.Def{
			Name: name, Doc: "Returns the name of the device of an iterator.",
			In: []string{"resource: resource"}, Out: []string{"device: string"}, Stateful: true, Shape: opdef.ScalarShape,
		}, func(ctx *kernel.Context) error {
			ctx.SetOutput(0, tensor.Scalar(ctx.Device.Name))
			return nil
		})
	}
}

func toStringHandle[T kernel.Resource](ctx *kernel.Context) error {
	if ctx.Input(0).Rank() != 0 {
		return status.InvalidArgumentf("resource_handle must be a scalar")
	}
	if _, err := resource.Find[T](ctx, 0); err != nil {
		return err
	}
	h, err := resource.Handle(ctx, 0)
	if err != nil {
		return err
	}
	if err := publish(ctx.Device.Resources, h); err != nil {
		return err
	}
	text, err := proto.Marshal(pbconv.HandleToProto(h))
	if err == nil {
		ctx.SetOutput(0, tensor.Scalar(string(text)))
	}
	return err
}

// publish makes a resource that its handle owns reachable by name, for the string handle. It stays
// so until the handle is unreachable.
func publish(resources *kernel.Resources, h *tensor.Handle) error {
	owned, ok := h.Resource.(kernel.Resource)
	if !ok {
		return nil
	}
	err := kernel.CreateResource(resources, h.Container, h.Name, owned)
	if status.CodeOf(err) == status.AlreadyExists { // it has a string handle already
		return nil
	}
	if err == nil {
		named := tensor.Handle{Container: h.Container, Name: h.Name, TypeName: owned.TypeName()}
		runtime.AddCleanup(h, func(h tensor.Handle) {
			// an error means that the program has deleted it
			_ = resources.DeleteResource(h.Container, h.TypeName, h.Name)
		}, named)
	}
	return err
}

// resourceWithSpec is a resource with known types and shapes of its elements.
type resourceWithSpec interface {
	kernel.Resource
	elementSpec() *spec
}

func newFromStringHandle[T resourceWithSpec](c *kernel.Construction) (kernel.Kernel, error) {
	want := spec{c.Attrs.Types("output_types"), c.Attrs.Shapes("output_shapes")}
	if len(want.types) > 0 && len(want.shapes) > 0 && len(want.types) != len(want.shapes) {
		return nil, status.InvalidArgumentf("If both 'output_types' and 'output_shapes' are set, they must have the same length.")
	}
	return kernel.Func(func(ctx *kernel.Context) error {
		h, err := parseHandle(ctx)
		if err != nil {
			return err
		}
		it, err := kernel.LookupResource[T](ctx.Device.Resources, h.Container, h.Name)
		if err != nil {
			return err
		}
		if err := want.fits(it.elementSpec()); err != nil {
			return err
		}
		ctx.SetOutput(0, tensor.Scalar(h))
		return nil
	}), nil
}

func parseHandle(ctx *kernel.Context) (*tensor.Handle, error) {
	in := ctx.Input(0)
	if in.Rank() != 0 {
		return nil, status.InvalidArgumentf("string_handle must be a scalar")
	}
	p := &pb.ResourceHandleProto{}
	if protomem.Unmarshal([]byte(tensor.Value[string](in)), p) != nil {
		return nil, status.InvalidArgumentf("Could not parse string_handle as a valid ResourceHandle")
	}
	h, err := pbconv.HandleFromProto(p)
	if err == nil && h.Device != ctx.Device.Name {
		err = status.InvalidArgumentf("Attempted create an iterator on device %q from handle defined on device %q",
			ctx.Device.Name, h.Device)
	}
	return h, err
}

// fits checks the elements of an iterator against the types and shapes of a node, which may be
// empty.
func (s *spec) fits(have *spec) error {
	if len(s.types) > 0 {
		if err := checkTypes(s.types, have.types); err != nil {
			return err
		}
	}
	if len(s.shapes) > 0 {
		return checkShapes(s.shapes, have.shapes)
	}
	return nil
}
