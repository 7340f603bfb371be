// Package logging implements the operations that print, check assertions, watch values for a
// debugger, and return the time.
package logging

import (
	"time"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterNew(opdef.Def{
		Name: "Assert", Doc: "Fails with the values of data if the condition is false.",
		In: []string{"condition: bool", "data: T"}, Attrs: []string{"T: list(type) >= 1", "summarize: int = 3"},
		Stateful: true,
	}, newAssert)
	kernel.RegisterFunc(opdef.Def{
		Name: "Timestamp", Doc: "Returns the time in seconds since 1970-01-01 00:00 UTC.",
		Out: []string{"ts: float64"}, Stateful: true, Shape: opdef.ScalarShape,
	}, func(ctx *kernel.Context) error {
		ctx.SetOutput(0, tensor.Scalar(float64(time.Now().UnixMicro())/1e6))
		return nil
	})
}

func newAssert(c *kernel.Construction) (kernel.Kernel, error) {
	most := c.Attrs.Int("summarize")
	return kernel.Func(func(ctx *kernel.Context) error {
		condition := ctx.Input(0)
		if condition.Rank() != 0 {
			return status.InvalidArgumentf("In[0] should be a scalar: %v", condition.Shape())
		}
		if tensor.Value[bool](condition) {
			return nil
		}
		return status.InvalidArgumentf("assertion failed: %s", values(ctx, most, " "))
	}), nil
}

// values formats the inputs from the second on, each in brackets.
func values(ctx *kernel.Context, most int, separator string) string {
	parts := membudget.MakeCap[string](ctx.NumInputs())
	var meter membudget.Meter
	for i := 1; i < ctx.NumInputs(); i++ {
		summary := ctx.Input(i).Summary(most)
		meter.MustTake(len(summary))
		parts = append(parts, "["+summary+"]")
	}
	return meter.Join(parts, separator)
}
