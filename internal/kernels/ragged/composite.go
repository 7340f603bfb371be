package ragged

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/internal/opkit/protomem"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// compositeName is TensorFlow's type name of variants that hold a composite tensor.
const compositeName = "CompositeTensorVariant"

func init() {
	attrs := []string{"metadata: string", "Tcomponents: list(type) >= 0"}
	kernel.RegisterNew(opdef.Def{
		Name: "CompositeTensorVariantFromComponents", Doc: "Encodes the components of a ragged, sparse or other composite tensor in a variant.",
		In: []string{"components: Tcomponents"}, Out: []string{"encoded: variant"}, Attrs: attrs, Shape: opdef.ScalarShape,
	}, newFromComponents)
	kernel.RegisterNew(opdef.Def{
		Name: "CompositeTensorVariantToComponents", Doc: "Decodes the components of a composite tensor from a variant.",
		In: []string{"encoded: variant"}, Out: []string{"components: Tcomponents"}, Attrs: attrs, Shape: opdef.UnknownShape,
	}, newToComponents)
	tensor.RegisterVariant(compositeName, func(v tensor.EncodedVariant) (any, error) {
		class, ok := typeSpecClass(v.Metadata)
		if !ok {
			return nil, status.InvalidArgumentf("a variant that holds a composite tensor has metadata that cannot be read")
		}
		return &composite{class, v.Metadata, v.Tensors}, nil
	})
}

// composite is a composite tensor in a variant. It owns references to its components and is
// immutable.
type composite struct {
	class      pb.TypeSpecProto_TypeSpecClass
	metadata   []byte // serialized CompositeTensorVariantMetadata
	components []tensor.Tensor
}

// typeSpecClass returns the kind of tensor that a CompositeTensorVariantMetadata describes.
func typeSpecClass(metadata []byte) (pb.TypeSpecProto_TypeSpecClass, bool) {
	const specField = 1
	var spec pb.TypeSpecProto
	for len(metadata) > 0 {
		number, kind, n := protowire.ConsumeField(metadata)
		if n < 0 {
			return 0, false
		}
		field := metadata[:n]
		metadata = metadata[n:]
		if number != specField || kind != protowire.BytesType {
			continue
		}
		_, _, skip := protowire.ConsumeTag(field)
		value, _ := protowire.ConsumeBytes(field[skip:])
		if !protomem.Take(spec.ProtoReflect().Descriptor(), value) {
			return 0, false
		}
		if (proto.UnmarshalOptions{Merge: true}).Unmarshal(value, &spec) != nil {
			return 0, false
		}
	}
	return spec.GetTypeSpecClass(), true
}

// EncodeVariant returns the wire form of the tensor.
func (c *composite) EncodeVariant() (tensor.EncodedVariant, error) {
	v := tensor.EncodedVariant{TypeName: compositeName, Metadata: c.metadata}
	for i := range c.components {
		v.Tensors = append(v.Tensors, c.components[i].Retain())
	}
	return v, nil
}

// String formats the tensor as TensorFlow's errors do.
func (c *composite) String() string {
	parts := membudget.Make[string](len(c.components))
	var meter membudget.Meter
	for i := range parts {
		parts[i] = c.components[i].String()
	}
	return fmt.Sprintf("<CompositeTensorVariant type=%v, components=[%s]>", c.class, meter.Join(parts, ", "))
}

func newFromComponents(c *kernel.Construction) (kernel.Kernel, error) {
	metadata := []byte(c.Attrs.String("metadata"))
	class, ok := typeSpecClass(metadata)
	if !ok {
		return nil, status.InvalidArgumentf("Error parsing metadata")
	}
	return kernel.Func(func(ctx *kernel.Context) error {
		v := &composite{class, metadata, membudget.Make[tensor.Tensor](ctx.NumInputs())}
		for i := range v.components {
			v.components[i] = ctx.Input(i).Retain()
		}
		ctx.SetOutput(0, tensor.Scalar(tensor.VariantValue{Value: v}))
		return nil
	}), nil
}

func newToComponents(c *kernel.Construction) (kernel.Kernel, error) {
	want, ok := typeSpecClass([]byte(c.Attrs.String("metadata")))
	if !ok {
		return nil, status.InvalidArgumentf("Error parsing `metadata`")
	}
	types := c.Attrs.Types("Tcomponents")
	return kernel.Func(func(ctx *kernel.Context) error {
		in := ctx.Input(0)
		if in.NumElements() == 0 {
			return status.InvalidArgumentf("Input `encoded` must not be an empty variant tensor, but got %v", in)
		}
		v, ok := tensor.Values[tensor.VariantValue](in)[0].Value.(*composite)
		switch {
		case !ok:
			return status.InvalidArgumentf("The input `encoded` is not a valid CompositeTensorVariant tensor, got %v", in)
		case v.class != want:
			return status.InvalidArgumentf("Expected a %v (based on `type_spec`), but `encoded` contains a %v", want, v.class)
		case len(v.components) != len(types):
			return status.InvalidArgumentf("Encoded value has %d tensor components; expected %d components based on type_spec",
				len(v.components), len(types))
		}
		for i := range v.components {
			t := &v.components[i]
			if t.DType() != types[i] {
				return status.InvalidArgumentf("Tensor component %d had dtype %s; expected dtype %s", i, t.DType().Enum(), types[i].Enum())
			}
			ctx.SetOutput(i, t.Retain())
		}
		return nil
	}), nil
}
