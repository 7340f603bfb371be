// Package summary holds the operations that make summaries, as strings for a client to write to an
// event file, and those that write them to a file of the task that they run on.
package summary

import (
	"github.com/weft-ml/weft/internal/opkit/typeset"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/summary"
	"github.com/weft-ml/weft/tensor"
)

// registerReal adds an operation with an attribute T that is a real number.
func registerReal(def opdef.Def, compute kernel.Func) {
	kernel.Register(kernel.Op{Def: def, Kernels: kernel.ForTypes("T", kernel.Stateless(compute), typeset.Real...)})
}

// result makes a summary the output.
func result(ctx *kernel.Context, values ...summary.Value) error {
	b, err := summary.Marshal(values...)
	if err == nil {
		ctx.SetOutput(0, tensor.Scalar(string(b)))
	}
	return err
}

// scalarTag returns the tag that input 0 is, which must be a scalar.
func scalarTag(ctx *kernel.Context, complaint string) (string, error) {
	if ctx.Input(0).Rank() != 0 {
		return "", status.InvalidArgumentf("%s", complaint)
	}
	return tensor.Value[string](ctx.Input(0)), nil
}
