package listops

import (
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	registerVersions(opdef.Def{
		Name: "TensorArrayWrite", Doc: "Writes an element of a tensor array.",
		In: []string{"index: int32", "value: T", "flow_in: float"}, Out: []string{"flow_out: float"}, Attrs: []string{"T: type"},
		Shape: arrayRule(writeShape, 0, -1, 0),
	}, onArray(writeElem))
	registerVersions(opdef.Def{
		Name: "TensorArrayRead", Doc: "Reads an element of a tensor array.",
		In: []string{"index: int32", "flow_in: float"}, Out: []string{"value: dtype"}, Attrs: []string{"dtype: type"},
		Shape: arrayRule(readShape, 0, 0),
	}, onArray(readElem))
}

func writeShape(c *opdef.ShapeContext) error {
	if elem, ok := elemOf(c); ok {
		if _, err := opdef.MergeShapes(elem, c.In[2]); err != nil {
			return err
		}
	}
	return opdef.ScalarShape(c)
}

func readShape(c *opdef.ShapeContext) error {
	c.Out[0], _ = elemOf(c)
	return nil
}

// checkWritten checks that the type of a written value is the array's.
func (a *Array) checkWritten(dtype tensor.DType) error {
	if dtype != a.dtype {
		return status.InvalidArgumentf("TensorArray dtype is %v but Op is trying to write dtype %v.", a.dtype, dtype)
	}
	return nil
}

// checkRequested checks that the requested type is the array's.
func (a *Array) checkRequested(dtype tensor.DType) error {
	if dtype != a.dtype {
		return status.InvalidArgumentf("TensorArray dtype is %v but Op requested dtype %v.", a.dtype, dtype)
	}
	return nil
}

// index returns input 1, a scalar.
func index(ctx *kernel.Context) (int, error) {
	t := ctx.Input(1)
	if t.Rank() != 0 {
		return 0, status.InvalidArgumentf("TensorArray index must be scalar, but had shape: %v", t.Shape())
	}
	return int(tensor.Value[int32](t)), nil
}

func writeElem(ctx *kernel.Context, a *Array) error {
	i, err := index(ctx)
	if err != nil {
		return err
	}
	if err := a.checkWritten(ctx.Input(2).DType()); err != nil {
		return err
	}
	value := ctx.TakeInput(2)
	defer value.Release()
	if err := a.write(ctx, i, &value); err != nil {
		return err
	}
	return ctx.PassInput(3, 0)
}

func readElem(ctx *kernel.Context, a *Array) error {
	i, err := index(ctx)
	if err != nil {
		return err
	}
	if err := a.checkRequested(ctx.OutputType(0)); err != nil {
		return err
	}
	value, err := a.read(ctx, i)
	if err == nil {
		ctx.SetOutput(0, value)
	}
	return err
}
