package state

import (
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterNew(opdef.Def{
		Name: "CreateVariableOp", Doc: "Creates a variable with a value. A variable that exists keeps its value. From TensorFlow 0.12.",
		In:    []string{"resource: resource", "value: dtype"},
		Attrs: []string{"dtype: type"},
		Shape: assignVariableShape,
	}, newCreateVariable)
}

func newCreateVariable(*kernel.Construction) (kernel.Kernel, error) {
	return kernel.Func(func(ctx *kernel.Context) error {
		v, err := madeVariable(ctx)
		if err != nil {
			return err
		}
		value := ctx.Input(1)
		return v.Update(func(t *tensor.Tensor) error {
			if t.Initialized() {
				return nil
			}
			*t = value.Retain()
			return nil
		})
	}), nil
}
