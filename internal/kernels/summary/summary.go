// Package summary implements the operations that create summaries, as strings that a client writes
// to an event file, and those that write them to an event file of their task.
package summary

import (
	"github.com/weft-ml/weft/internal/opkit/typeset"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/summary"
	"github.com/weft-ml/weft/tensor"
)

// registerReal registers an operation whose attribute T is a real dtype.
func registerReal(def opdef.Def, compute kernel.Func) {
	kernel.Register(kernel.Op{Def: def, Kernels: kernel.ForTypes("T", kernel.Stateless(compute), typeset.Real...)})
}

// result sets the output to a summary.
func result(ctx *kernel.Context, values ...summary.Value) error {
	b, err := summary.Marshal(values...)
	if err == nil {
		membudget.MustTake(int64(len(b)))
		ctx.SetOutput(0, tensor.Scalar(string(b)))
	}
	return err
}

// scalarTag returns the tag in input 0, which must be a scalar.
func scalarTag(ctx *kernel.Context, complaint string) (string, error) {
	if ctx.Input(0).Rank() != 0 {
		return "", status.InvalidArgumentf("%s", complaint)
	}
	return tensor.Value[string](ctx.Input(0)), nil
}
