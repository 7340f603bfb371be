package control

import (
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
)

func init() {
	kernel.RegisterFunc(opdef.Def{
		Name: "NoOp", Doc: "Does nothing. Its control edges order other operations.",
	}, nothing)
	kernel.RegisterFunc(opdef.Def{
		Name: "ControlTrigger", Doc: "Does nothing, even if its control inputs are dead.",
	}, nothing)
	kernel.RegisterNew(opdef.Def{
		Name: "Abort", Doc: "Fails the step. TensorFlow ends the process.",
		Attrs: []string{"error_msg: string = ''", "exit_without_error: bool = false"},
	}, newAbort)
}

func nothing(*kernel.Context) error { return nil }

func newAbort(c *kernel.Construction) (kernel.Kernel, error) {
	message := c.Attrs.String("error_msg")
	return kernel.Func(func(*kernel.Context) error {
		return status.Abortedf("Abort_op intentional failure; %s", message)
	}), nil
}
