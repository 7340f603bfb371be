package data

import (
	"errors"

	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	one := []string{"optional: variant"}
	kernel.RegisterFunc(opdef.Def{
		Name: "OptionalFromValue", Doc: "Creates an optional variant from tensors.",
		In: []string{"components: Toutput_types"}, Out: one, Attrs: []string{"Toutput_types: list(type) >= 1"}, Shape: opdef.ScalarShape,
	}, func(ctx *kernel.Context) error {
		o := &optional{}
		for i := range ctx.NumInputs() {
			o.value = append(o.value, ctx.Input(i).Retain())
		}
		ctx.SetOutput(0, o.tensor())
		return nil
	})
	kernel.RegisterFunc(opdef.Def{
		Name: "OptionalNone", Doc: "Creates an optional variant without a value.", Out: one, Shape: opdef.ScalarShape,
	}, func(ctx *kernel.Context) error {
		ctx.SetOutput(0, (&optional{}).tensor())
		return nil
	})
	kernel.RegisterFunc(opdef.Def{
		Name: "OptionalHasValue", Doc: "Returns true if and only if an optional has a value.",
		In: one, Out: []string{"has_value: bool"}, Shape: opdef.ScalarShape,
	}, func(ctx *kernel.Context) error {
		o, err := optionalOf(ctx.Input(0))
		if err == nil {
			ctx.SetOutput(0, tensor.Scalar(o.value != nil))
		}
		return err
	})
	kernel.RegisterNew(opdef.Def{
		Name: "OptionalGetValue", Doc: "Returns the value of an optional variant. It fails if there is none.",
		In: one, Out: []string{"components: output_types"}, Attrs: withSpec(), Shape: elementShape,
	}, func(c *kernel.Construction) (kernel.Kernel, error) {
		want := spec{c.Outputs, c.Attrs.Shapes("output_shapes")}
		return kernel.Func(func(ctx *kernel.Context) error { return optionalValue(ctx, want) }), nil
	})
	kernel.RegisterNew(opdef.Def{
		Name: "IteratorGetNextAsOptional", Doc: "Returns the next element of an iterator as an optional variant, which has no value at the end.",
		In: []string{"iterator: resource"}, Out: one, Attrs: withSpec(), Stateful: true, Shape: opdef.ScalarShape,
	}, onIterator(0, getOptional))
}

// optional is the value of a variant that holds an element or nothing.
type optional struct{ value element }

func (o *optional) tensor() tensor.Tensor { return tensor.Scalar(tensor.VariantValue{Value: o}) }

func optionalOf(t *tensor.Tensor) (*optional, error) {
	if t.Rank() != 0 {
		return nil, status.InvalidArgumentf("Input to OptionalHasValue must be a scalar tensor containing an OptionalVariant object.")
	}
	o, ok := tensor.Value[tensor.VariantValue](t).Value.(*optional)
	if !ok {
		return nil, status.InvalidArgumentf("Input is not an OptionalVariant object.")
	}
	return o, nil
}

func optionalValue(ctx *kernel.Context, want spec) error {
	o, err := optionalOf(ctx.Input(0))
	if err != nil {
		return err
	}
	if o.value == nil {
		return status.InvalidArgumentf("The given optional does not have a value.")
	}
	if err := checkTypes(want.types, specOf(o.value).types); err != nil {
		return err
	}
	for i := range o.value {
		if v := &o.value[i]; !want.shapes[i].CompatibleWith(v.Shape()) {
			return status.InvalidArgumentf("The given optional does not match the expected shape for component %d. Expected: %v. Actual: %v.",
				i, want.shapes[i], v.Shape())
		}
	}
	for i := range o.value {
		ctx.SetOutput(i, o.value[i].Retain())
	}
	return nil
}

func getOptional(c *kernel.Construction, ctx *kernel.Context, it *Iterator) error {
	e, err := it.next(ctx, &spec{c.Attrs.Types("output_types"), c.Attrs.Shapes("output_shapes")})
	if err != nil && !errors.Is(err, errEnd) {
		return err
	}
	ctx.SetOutput(0, (&optional{e}).tensor())
	return nil
}
