package function

import (
	"slices"

	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterNew(opdef.Def{
		Name: "FakeParam", Doc: "Returns a placeholder for a value that only the other branch of a conditional " +
			"has. Unknown dimensions become 0.",
		Out: []string{"output: dtype"}, Attrs: []string{"dtype: type", "shape: shape"}, Shape: opdef.AttrShape,
	}, newFakeParam)
	kernel.RegisterNew(opdef.Def{
		Name: "DeviceIndex", Doc: "Returns the index of the type of its device in device_names, or the number of " +
			"types if it is not listed.",
		Out: []string{"index: int32"}, Attrs: []string{"device_names: list(string)"}, Shape: opdef.ScalarShape, Stateful: true,
	}, newDeviceIndex)
	kernel.RegisterFunc(opdef.Def{
		Name: "ToBool", Doc: "Converts its input to a condition: true for a scalar that is not zero or empty, " +
			"and for any other tensor with elements.",
		In: []string{"input: T"}, Out: []string{"output: bool"}, Attrs: []string{"T: type"}, Shape: opdef.ScalarShape,
	}, toBool)
	kernel.RegisterNew(opdef.Def{
		Name: "_ListToArray", Doc: "Converts a list of tensors to tensors of one type.",
		In: []string{"input: Tin"}, Out: []string{"output: N * T"},
		Attrs: []string{"Tin: list(type) >= 1", "T: type", "N: int >= 1"}, Shape: opdef.UnknownShape,
	}, newPassOn)
	kernel.RegisterNew(opdef.Def{
		Name: "_ArrayToList", Doc: "Converts tensors of one type to a list.",
		In: []string{"input: N * T"}, Out: []string{"output: out_types"},
		Attrs: []string{"T: type", "N: int >= 1", "out_types: list(type) >= 1"}, Shape: opdef.UnknownShape,
	}, newPassOn)
}

func newFakeParam(c *kernel.Construction) (kernel.Kernel, error) {
	shape := tensor.Shape{}
	for _, d := range c.Attrs.Shape("shape").Dims() {
		shape = append(shape, max(d, 0))
	}
	value, err := tensor.Zeros(c.Attrs.Type("dtype"), shape)
	if err != nil {
		return nil, err
	}
	return kernel.Func(func(ctx *kernel.Context) error {
		ctx.SetOutput(0, value.Retain())
		return nil
	}), nil
}

func newDeviceIndex(c *kernel.Construction) (kernel.Kernel, error) {
	names := c.Attrs.Strings("device_names")
	index := slices.Index(names, c.Device.Type)
	if index < 0 {
		index = len(names)
	}
	value := tensor.Scalar(int32(index))
	return kernel.Func(func(ctx *kernel.Context) error {
		ctx.SetOutput(0, value.Retain())
		return nil
	}), nil
}

func toBool(ctx *kernel.Context) error {
	v, err := truth(ctx.Input(0))
	ctx.SetOutput(0, tensor.Scalar(v))
	return err
}

func newPassOn(c *kernel.Construction) (kernel.Kernel, error) {
	if !slices.Equal(c.Inputs, c.Outputs) {
		return nil, status.Internalf("Input and output types do not match: %v vs. %v", c.Inputs, c.Outputs)
	}
	return kernel.Func(func(ctx *kernel.Context) error {
		for i := range ctx.NumInputs() {
			ctx.SetOutput(i, ctx.TakeInput(i))
		}
		return nil
	}), nil
}
